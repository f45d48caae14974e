"""`halo search check`: whether an index can still be believed."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from zoo.confidence.judge import ABSENT, NOT_UNDERSTOOD
from zoo.confidence.monitor import LEVEL, monitored
from zoo.embeddings.arrays import coordinates
from zoo.errors import InputError
from zoo.files.text_files import read_lines
from zoo.retriever import canaries
from zoo.retriever.retriever import Retriever
from zoo.search import hubs

_AT_ONCE = 256  # questions


def check(options: Any) -> None:
    """Prints what is found; the exit code is 1 where something no longer holds."""
    retriever = Retriever.load(options.folder, options.model, check=False)
    sung = retriever.sing()
    found, holds = {"canaries": canaries.to_json(sung)}, sung is None or sung.holds
    lines = ["no fixed questions are kept with this index: build it again"]
    if sung is not None:
        lines = [sung.sentence]
    if options.questions is not None:
        found["questions"] = of_questions(retriever, _texts(options.questions))
        lines += found["questions"].pop("sentences")
        holds &= found["questions"]["shift"] != "drifted"
    if options.feedback is not None:
        alarm = monitored(*feedback(options.feedback))
        lines.append(alarm.sentence)
        found["feedback"] = {
            "answers": alarm.answers,
            "wrong": alarm.wrong,
            "promised": alarm.promised,
            "wealth": alarm.wealth,
            "level": LEVEL,
            "alarm_at": alarm.at,
        }
        holds &= alarm.at is None
    found["holds"] = bool(holds)
    print(json.dumps(found) if options.json else "\n".join(f"{options.folder}: {x}" for x in lines))
    if not holds:
        raise SystemExit(1)


def of_questions(retriever: Retriever, texts: list[str]) -> dict[str, Any]:
    """What is told of questions that were asked, JSON values, and `sentences` for a person."""
    answers = [
        answer
        for start in range(0, len(texts), _AT_ONCE)
        for answer in retriever.ask(texts[start : start + _AT_ONCE])
    ]
    asked = retriever.embed(texts)
    verdicts = [answer.verdict for answer in answers]
    declined = sum(verdict in (ABSENT, NOT_UNDERSTOOD) for verdict in verdicts) / len(texts)
    named = hubs(retriever.index, asked)
    told = [str(one) for one in named]
    names = retriever.names_of(np.array([one.id for one in named], np.int64)) if named else None
    shift, why = "not known", retriever.judge.why_not
    if retriever.confidence is not None:
        scores = retriever.index.query_scores(asked, copies=retriever.confidence.copies)
        verdict = retriever.confidence.check(scores, queries=coordinates(asked))
        shift, why = verdict.state, verdict.sentence
    sentences = [
        f"{len(texts):,} questions, {declined:.0%} declined",
        f"shift of questions: {why}",
        f"hubs: {'; '.join(told) or 'none'}",
    ]
    return {
        "questions": len(texts),
        "declined": declined,
        "shift": shift,
        "hubs": [{"id": one.id, "share": one.share} for one in named],
        "hub_names": names,
        "sentences": sentences,
    }


def feedback(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """`(wrong, promised)` of labelled answers: lines of JSON with `right` and `probability`."""
    wrong, promised = [], []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            right, probability = row["right"], row["probability"]
        except (ValueError, KeyError, TypeError):
            right = probability = None
        is_share = type(probability) in (int, float) and 0 <= probability <= 1
        if not isinstance(right, bool) or not is_share:
            raise InputError(
                f'--feedback {path}:{number}: expected {{"probability": 0 … 1, "right": true or '
                f"false}}; found {line[:60]!r}"
            )
        wrong.append(not right)
        promised.append(1 - probability)
    if not wrong:
        raise InputError(f"--feedback {path}: expected lines of JSON; found none")
    return np.array(wrong), np.array(promised)


def _texts(path):
    texts = [line.strip() for line in read_lines(path) if line.strip()]
    if not texts:
        raise InputError(f"--questions {path}: expected a question on each line; found none")
    return texts
