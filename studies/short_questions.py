"""What is said to words, phrases and what people type: over Flickr8k's test photos.

    python -m studies.short_questions photos_pfe FLICKR8K COCO/captions_val2017.json

Short questions are cut out of test captions by `zoo.evaluation.phrases`. True is that a photo's
five captions hold all their stems, else what the oracle says; held counts the stems alone, which is
a lower bound. General nouns are the hundred that most photos of the gallery hold; absent ones are
nouns of COCO's captions that no photo of the gallery and at most two of all Flickr8k's photos hold.
"""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np

from studies.people_data import Encoded, add_flags
from studies.strange_questions import OTHER_LANGUAGES, invented_texts
from zoo import evaluation
from zoo.cli import OneLineParser, run
from zoo.confidence import Probes, abstention_auc
from zoo.confidence.judge import FIT, VERDICTS
from zoo.confidence.words import stem, stems
from zoo.embeddings.arrays import take
from zoo.evaluation.fits import scores_over
from zoo.evaluation.phrases import held_stems, nouns_of, short_questions
from zoo.evaluation.relevance import relevance_of_words, score_scale, sentence_vectors
from zoo.models.presets import from_preset
from zoo.retriever import Retriever

EACH, NOUNS = 400, 100
RARE = 2  # photos of all Flickr8k that may hold an absent noun
PREAMBLES = (
    "{}",
    "a {}",
    "photos of {}",
    "show me {}",
    "pictures with {}",
    "my {}",
    "do you have photos of {}?",
    "find me a picture of a {} please",
)


def main(argv=None):
    options = _parser().parse_args(argv)
    data = Encoded.of(options.folder, options.model, "test", options.cache)
    probes = Probes.load(options.probes) if options.probes else evaluation.probes_of(options.model)
    model, rng = from_preset(options.model), np.random.default_rng(options.seed)
    held = held_stems(data.texts, data.owners, len(data.names))
    asked = short_questions(data.texts, rng, EACH)
    fit = what_fits(data, model, asked, held)
    print("| photos | words | questions | said | true | held | nAUC | number said | true |")
    print("|---" * 9 + "|")
    for size in options.sizes:
        photos = np.random.default_rng(options.seed).permutation(len(held))[:size]
        retriever = over(data, model, probes, photos)
        for count in (1, 2, 3):
            rows = [row for row, text in enumerate(asked) if len(stems(text)) == count]
            told = _row(retriever, [asked[row] for row in rows], fit[rows])
            print(f"| {size:,} | {count} | {told} |", flush=True)
    size = options.sizes[0]
    photos = np.random.default_rng(options.seed).permutation(len(held))[:size]
    retriever = over(data, model, probes, photos)
    general, absent = nouns(options, data, held, photos)
    print(f"\nVerdicts over {size:,} photos\n")
    print(f"| questions | {' | '.join(VERDICTS)} |\n|---|---|---|---|---|")
    for name, words in (("general nouns", general), ("absent nouns", absent)):
        for form in PREAMBLES:
            _verdicts(retriever, f"{len(words)} {name}, “{form.format('X')}”", words, form)
    _verdicts(retriever, "140 texts of invented words", invented_texts(rng))
    _verdicts(retriever, f"{len(OTHER_LANGUAGES)} other languages", OTHER_LANGUAGES)
    _verdicts(retriever, f"{len(data.texts):,} captions of the test photos", data.texts)
    return 0


def over(data, model, probes, photos):
    """A `Retriever` over some photos."""
    return Retriever.build(model, take(data.images, photos), ids=photos, probes=probes)


def what_fits(data, model, texts, held):
    """`(Q, N)`, how likely each photo fits each short question."""
    rows = np.flatnonzero(np.diff(data.owners, prepend=-1))  # a caption of each photo
    scale = score_scale(data.scores(rows), np.eye(len(rows), dtype=bool))
    asked = model.tower("captions").of_texts(texts)
    scores = scores_over(data.images, asked, data.similarity, "images")
    captions, questions = (data.sentences, data.owners), sentence_vectors(texts)
    return relevance_of_words(texts, held, captions, questions, scores, scale)[1]


def nouns(options, data, held, photos):
    """`(general, absent)` nouns, 100 of each at most."""
    here = Counter(word for photo in photos for word in held[photo])
    ours = nouns_of(data.texts)
    general = [word for word, _ in here.most_common() if word in ours][:NOUNS]
    everywhere, seen = Counter(), {}
    with open(options.folder / "pairs.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            seen.setdefault(row["image"], set()).update(stems(row["caption"]))
    for words in seen.values():
        everywhere.update(words)
    coco = json.loads(options.coco.read_text(encoding="utf-8"))["annotations"]
    theirs = {word for word in nouns_of([one["caption"] for one in coco]) if stem(word) == word}
    rare = sorted(word for word in theirs if everywhere[word] <= RARE and word not in here)
    chosen = np.random.default_rng(options.seed).permutation(len(rare))[:NOUNS]
    return general, [rare[row] for row in chosen]


def _row(retriever, texts, fit):
    answers = retriever.ask(texts, k=20)
    kept = [row for row, one in enumerate(answers) if one.fits is not None]
    answers, fit = [answers[row] for row in kept], fit[kept]
    said = np.array([one.probability for one in answers])
    true = fit[np.arange(len(kept)), [one.ids[0] for one in answers]]
    number = np.mean([one.number for one in answers])
    there = fit[:, retriever.index.ids].sum(axis=1).mean()
    area = abstention_auc(said, true >= FIT)
    return (
        f"{len(kept)} of {len(texts)} | {said.mean():.3f} | {true.mean():.3f} | "
        f"{(true == 1).mean():.3f} | {area:.2f} | {number:.1f} | {there:.1f}"
    )


def _verdicts(retriever, name, words, form="{}"):
    found = Counter(one.verdict for one in retriever.ask([form.format(w) for w in words]))
    print(f"| {name} | {' | '.join(str(found[verdict]) for verdict in VERDICTS)} |", flush=True)


def _parser():
    parser = OneLineParser(
        prog="python -m studies.short_questions", description=__doc__.split("\n")[0]
    )
    add_flags(parser, sizes=[500, 1000])
    parser.add_argument("coco", type=Path, help="COCO's captions_val2017.json")
    return parser


if __name__ == "__main__":
    run(main)
