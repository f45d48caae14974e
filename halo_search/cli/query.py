"""`halo search query`: asks an index; no Keras where the index has ONNX towers."""

import itertools
import json
import sys
from pathlib import Path

from halo_search.cli.checks import check_index, check_model, check_path
from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import naming
from halo_search.collection import Items, encode_items
from halo_search.errors import InputError
from halo_search.files.text_files import read_lines
from halo_search.retriever.calibration import OTHER
from halo_search.retriever.retriever import Retriever

MOVED = "new model path, if it has moved since `build`"
_AT_ONCE = 256  # questions


def add(commands):
    """The command with its flags."""
    command = commands.add_parser("query", help="search")
    command.add_argument("folder", type=Path, help="folder that `build` wrote")
    command.add_argument("text", nargs="*", help="questions; unquoted words are one question")
    command.add_argument(
        "--queries", metavar="FILE", help="file with one question per line; - is standard input"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per answer")
    command.add_argument(
        "--among",
        metavar="FILE|GLOB",
        help="part of the gallery to ask, judged on its own: a file with one id or name per line, "
        'or a pattern of names such as "2019/*"',
    )
    command.add_argument("--image", help="image file to ask with")
    command.add_argument("--vector", metavar="FILE", help="file of stored vectors to ask with")
    command.add_argument(
        "--row", type=whole_number(0), help="row of the vector in --vector FILE (default 0)"
    )
    command.add_argument(
        "-k", type=int, default=10, help="results, with --all on a page (default 10)"
    )
    command.add_argument("--all", action="store_true", help="page through all that fits")
    command.add_argument("--offset", type=int, default=0, help="results of --all to pass over (0)")
    command.add_argument("--model", help=MOVED)
    command.set_defaults(run=query)


def query(options):
    """Asks, and prints the answers."""
    texts = _joined_words(options.text)
    _check_flags(options)
    with naming("--model", options.model):
        check_model(options.model)
        retriever = Retriever.load(options.folder, options.model, lean=options.queries is None)
    if options.among is not None:
        retriever = _part(retriever, options.among)
    is_many = len(texts) > 1 or bool(options.queries)
    try:
        for batch in _batches(
            retriever, texts, options.image, options.queries, options.vector, options.row
        ):
            if options.all:
                answers = (retriever.all(asked, options.offset, options.k) for asked in batch)
            else:
                answers = retriever.ask(batch, options.k)
            for answer in answers:
                _print(answer, in_json=options.json, with_question=is_many)
    except ValueError as error:
        raise InputError(f"{options.folder}: {error}") from error


def _check_flags(options):
    """Raises InputError for flags that do not go together, and paths that are not there, before the
    gallery is read."""
    ways = [options.text, options.image, options.vector, options.queries]
    if sum(map(bool, ways)) != 1:
        raise InputError(
            "query: expected texts, --image FILE, --vector FILE or --queries FILE, one of these"
        )
    if options.k < 1:
        raise InputError(f"-k must be at least 1; received {options.k}")
    if options.offset < 0:
        raise InputError(f"--offset must be at least 0; received {options.offset}")
    if options.offset and not options.all:
        raise InputError("--offset goes with --all")
    if options.row is not None and options.vector is None:
        raise InputError(f"--row {options.row}: needs --vector FILE")
    check_index(options.folder)
    for name in ("image", "vector"):
        path = getattr(options, name)
        check_path(path, f"--{name} {path}: no such file or folder")


def _part(retriever, among):
    """The part of a gallery that --among names: the lines of a file, or a pattern of names."""
    items = among
    if Path(among).is_file():
        items = [line.strip() for line in read_lines(Path(among)) if line.strip()]
    try:
        return retriever.part(items)
    except ValueError as error:
        reason = str(error).removeprefix("`among` ")
        raise InputError(f"--among {among}: {reason}") from error


def _batches(retriever, texts, image, queries, vector, row):
    """Yields lists of questions, as `Retriever.ask` takes them; of --queries a few at a time, of
    standard input each as it comes."""
    side = OTHER[retriever.side]
    if vector is not None:
        item = Items("rows", ["row"], [row or 0], [""], path=vector)
        yield [encode_items(retriever.tower(side), item).arrays]
        return
    if retriever.tower(side).reads == "vectors":
        raise InputError(
            f"query: the model reads vectors of {side}; search with --vector FILE --row NUMBER"
        )
    if image is not None:
        yield [Path(image)]
    elif queries is not None:
        lines = _lines(queries)
        while batch := list(itertools.islice(lines, 1 if queries == "-" else _AT_ONCE)):
            yield batch
    else:
        yield texts


def _lines(queries):
    """The questions of `--queries`; those of standard input as they come."""
    try:
        if queries == "-":
            sys.stdin.reconfigure(encoding="utf-8-sig", newline=None)  # lines end as in files
        lines = sys.stdin if queries == "-" else read_lines(Path(queries))
        number = 0
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                raise InputError(f"--queries {queries}:{number}: expected a question, found none")
            yield line.strip()
        if not number:
            raise InputError(f"--queries {queries}: expected a question a line, found none")
    except UnicodeDecodeError as error:
        raise InputError(f"--queries {queries}: expected UTF-8 ({error})") from error


def _joined_words(texts):
    """The questions that were typed: several single words are one, which lost its quotes."""
    if len(texts) > 1 and all(len(text.split()) == 1 for text in texts):
        texts = [" ".join(texts)]
        print(
            f"asked as one question: {texts[0]!r}; for several single words use --queries FILE",
            file=sys.stderr,
        )
    return texts


def _print(answer, in_json, with_question):
    """Prints an answer, or a page of all that fits, as one JSON object or for a person."""
    if in_json:
        print(json.dumps(answer.to_dict()), flush=True)
        return
    if with_question:
        print(answer.question)
    print(answer, flush=True)
