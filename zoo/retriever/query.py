"""`halo search query`: asks an index; no TensorFlow where the index has its own towers."""

import itertools
import json
import sys
from pathlib import Path

from zoo.errors import InputError
from zoo.files.text_files import read_lines
from zoo.retriever.retriever import Retriever

_AT_ONCE = 256  # questions


def query(options):
    """Asks, and prints the answers."""
    ways = [bool(options.text), options.image, options.vector, options.queries]
    if sum(map(bool, ways)) != 1:
        raise InputError(
            "query: expected texts, --image FILE, --vector FILE or --queries FILE, one of these"
        )
    options.text = _questions_of(options.text)
    if options.k < 1:
        raise InputError(f"-k must be at least 1; received {options.k}")
    if options.offset < 0:
        raise InputError(f"--offset must be at least 0; received {options.offset}")
    if options.offset and not options.all:
        raise InputError("--offset goes with --all")
    retriever = Retriever.load(options.folder, options.model)
    if (among := options.among) is not None:
        if Path(among).is_file():
            among = [line.strip() for line in read_lines(Path(among)) if line.strip()]
        try:
            retriever = retriever.part(among)
        except ValueError as error:
            said = str(error).removeprefix("`among` ")
            raise InputError(f"--among {options.among}: {said}") from error
    try:
        for questions in _questions(options, retriever):
            _answer(questions, retriever, options)
    except ValueError as error:
        raise InputError(f"{options.folder}: {error}") from error


def _answer(questions, retriever: Retriever, options):
    is_one = len(options.text) == 1 or not (options.text or options.queries)
    if options.all:
        answers = (retriever.all(question, options.offset, options.k) for question in questions)
    else:
        answers = retriever.ask(questions, options.k)
    for answer in answers:
        if not (is_one or options.json):
            print((answer.answer if options.all else answer).question)
        print(json.dumps(answer.to_dict()) if options.json else answer, flush=True)


def _questions(options, retriever):
    """Yields lists of questions, as `Retriever.ask` takes them."""
    other = "images" if retriever.side == "captions" else "captions"
    if options.vector is not None:
        from zoo.collection import Items, encode_items

        row = Items("rows", ["row"], [options.row], [""], path=options.vector)
        yield [encode_items(retriever.tower(other), row).arrays]
        return
    if retriever.tower(other).reads == "vectors":
        raise InputError(
            f"query: the model reads vectors of {other}; search with --vector FILE --row NUMBER"
        )
    if options.image is not None:
        yield [Path(options.image)]
    elif options.queries is not None:
        lines = _lines(options.queries)
        while batch := list(itertools.islice(lines, 1 if options.queries == "-" else _AT_ONCE)):
            yield batch
    else:
        yield options.text


def _lines(queries):
    """The questions of `--queries`; those of standard input as they come."""
    try:
        if queries == "-":
            sys.stdin.reconfigure(encoding="utf-8-sig", newline=None)  # lines end as in files
        lines = sys.stdin if queries == "-" else read_lines(Path(queries))
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                raise InputError(f"--queries {queries}:{number}: expected a question, found none")
            yield line.strip()
    except UnicodeDecodeError as error:
        raise InputError(f"--queries {queries}: expected UTF-8 ({error})") from error


def _questions_of(texts):
    """The questions that were typed: several single words are one, which lost its quotes."""
    if len(texts) > 1 and all(len(text.split()) == 1 for text in texts):
        texts = [" ".join(texts)]
        print(
            f"asked as one question: {texts[0]!r}; for several single words use --queries FILE",
            file=sys.stderr,
        )
    return texts
