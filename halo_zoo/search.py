"""Makes a folder of images, or a table, searchable, and searches it.

    halo search build PHOTOS OUT --model PRESET_OR_RUN
    halo search query OUT "a small bird with a red crown"

`build` encodes a folder of pictures, or the rows of a table, into OUT and indexes them there.
Rerun the command to resume. OUT/search.json lists what it wrote; it touches nothing else.

    halo search update OUT [SOURCE]

encodes what is new or has changed, by name, size and time, drops what is gone, and indexes again,
with the flags of `build`. A folder or a CSV or TSV file gives images; with `--captions`, a CSV, TSV
or text file gives captions, which `query OUT --image FILE` then finds. For a model of stored
vectors the source is a file of them (.npy, .safetensors, .parquet), and `query OUT --vector FILE
--row 3` asks. `build` calibrates the index by the model's probes, or those of `--probes RUN`, and
`query` says how likely the first answer is right, see `zoo.Retriever`. `--queries FILE` asks many
questions, `--json` answers in JSON.

The two steps of `build` are commands too. `encode` writes Parquet files, here or on a cluster by
Apache Beam, whose own flags follow `--`; `index` reads them:

    halo search encode "gs://B/photos-*.tar" gs://B/parts --model PRESET \\
        --runner DataflowRunner -- --project=P --region=R --temp_location=gs://B/tmp
    halo search index gs://B/parts OUT --model PRESET
"""

import argparse
import contextlib
import importlib
import json
import sys
from pathlib import Path

from zoo.cli import OneLineParser, naming
from zoo.cli.bounds import (
    DTYPES,
    SIMILARITIES,
    TOKEN,
    check_index,
    check_model,
    check_path,
    check_run,
    check_source,
)
from zoo.cli.public import public_models, table
from zoo.errors import InputError

_JSON = "print one JSON object: what was seen, taken and left, by reason"
_MOVED = "new model path, if it has moved since `build`"


def main(argv=None):
    options = parse(argv)
    if options.command == "models":
        print(json.dumps(public_models()) if options.json else table())
        return
    with naming("--model", options.model):
        _look(options)
    if options.command not in ("query", "serve"):  # which may do without Keras
        importlib.import_module("zoo.training.registered")
    rooms = {
        "query": "zoo.retriever.query",
        "serve": "zoo.retriever.server",
    }
    room = rooms.get(options.command, "zoo.retriever.commands")
    in_json = options.command not in rooms and options.json
    options.said = {}
    with (
        naming("--model", options.model),
        contextlib.redirect_stdout(sys.stderr if in_json else sys.stdout),
    ):
        getattr(importlib.import_module(room), options.command)(options)
    if in_json:
        print(json.dumps(options.said))


def _look(options):
    """Raises InputError for a path or a model that is not there, before Keras is imported."""
    given = vars(options)
    if options.command in ("query", "serve", "update"):
        check_index(options.out if options.command == "update" else options.folder)
    kind = "file" if given.get("captions") else "folder of images, or CSV or TSV file"
    check_path(given.get("source"), f"{given.get('source')}: no such {kind}")
    if options.command in ("encode", "build") and given.get("runner") is None:
        check_source(options.source, options.captions, options.column)
    check_model(options.model)
    if given.get("probes") is not None:
        probes = given["probes"]
        check_run(probes, f"--probes {probes}: no such run folder or preset")
    for name in ("pairs", "image", "vector"):
        check_path(given.get(name), f"--{name} {given.get(name)}: no such file or folder")


def parse(argv=None):
    """The options of a command line; what follows `--` is `beam_flags`."""
    words = sys.argv[1:] if argv is None else list(argv)
    own = words[: words.index("--")] if "--" in words else words
    options = parser().parse_args(own)
    options.beam_flags = words[len(own) + 1 :]
    if options.beam_flags and getattr(options, "runner", None) is None:
        raise InputError(f"{options.beam_flags[0]}: flags of Beam need a --runner")
    return options


def parser():
    """The parser of all commands."""
    whole = OneLineParser(prog="halo search", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    _encode(commands.add_parser("encode", help="encode into Parquet files, here or on a cluster"))
    parts = commands.add_parser("index", help="index what `encode` wrote")
    parts.add_argument("shards", help="folder that `encode` wrote")
    parts.add_argument("out", type=Path, help="folder to write")
    parts.add_argument("--model", help="model of the queries (default: that of the parts)")
    parts.add_argument("--json", action="store_true", help=_JSON)
    _index(parts)
    made = commands.add_parser("build", help="encode and index")
    _source(made)
    made.add_argument("out", type=Path, help="folder to write or to resume")
    _follows(made)
    _index(made)
    again = commands.add_parser("update", help="encode new and changed items, then index again")
    again.add_argument("out", type=Path, help="folder that `build` wrote")
    again.add_argument("source", nargs="?", help="new source, if it has moved since `build`")
    again.add_argument("--model", help="new model path, or another model")
    _follows(again)
    find = commands.add_parser("query", help="search")
    find.add_argument("folder", type=Path, help="folder that `build` wrote")
    find.add_argument("text", nargs="*", help="questions; unquoted words are one question")
    find.add_argument(
        "--queries", metavar="FILE", help="file with one question per line; - is standard input"
    )
    find.add_argument("--json", action="store_true", help="print one JSON object per answer")
    find.add_argument(
        "--among",
        metavar="FILE|GLOB",
        help="part of the gallery to ask, judged on its own: a file with one id or name per line, "
        'or a pattern of names such as "2019/*"',
    )
    find.add_argument("--image", help="image file to ask with")
    find.add_argument("--vector", metavar="FILE", help="file of stored vectors to ask with")
    find.add_argument(
        "--row", type=int, default=0, help="row of the vector in --vector FILE (default 0)"
    )
    find.add_argument("-k", type=int, default=10, help="results, with --all on a page (default 10)")
    find.add_argument("--all", action="store_true", help="page through all that fits")
    find.add_argument("--offset", type=int, default=0, help="results of --all to pass over (0)")
    find.add_argument("--model", help=_MOVED)
    known = commands.add_parser("models", help="public models: size, published R@1, licence")
    known.add_argument("--json", action="store_true", help="print one JSON array")
    serve = commands.add_parser("serve", help="answer programs over HTTP, JSON in and out")
    serve.add_argument("folder", type=Path, help="folder that `build` wrote")
    serve.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)"
    )
    serve.add_argument(
        "--port", type=int, default=8000, help="port; 0 takes a free one (default 8000)"
    )
    serve.add_argument(
        "--allowed-host", nargs="+", default=[], metavar="NAME", help="further names it answers to"
    )
    serve.add_argument("--token", **TOKEN)
    serve.add_argument("--root-path", default="", help="path under which a proxy serves it")
    serve.add_argument("--model", help=_MOVED)
    return whole


def _source(command):
    command.add_argument(
        "source", help="folder of pictures, CSV, TSV, text file of captions or file of vectors"
    )
    command.add_argument("--model", required=True, help="name, folder or handle of a model")
    command.add_argument("--captions", action="store_true", help="index captions instead of images")
    command.add_argument("--column", help="column of a table (default: image or caption)")
    command.add_argument(
        "--names",
        metavar="FILE",
        help="file with the names of a vector file's rows: text, or FILE:COLUMN",
    )
    command.add_argument(
        "--shard-size", type=int, default=4096, help="items per Parquet file (default 4096)"
    )
    command.add_argument("--batch-size", type=int, default=16, help="items per batch (default 16)")


def _follows(command):
    command.add_argument("--json", action="store_true", help=_JSON)
    command.add_argument(
        "--yes", action="store_true", help="drop more than half of the items without asking"
    )
    command.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out unreadable images",
    )


def _encode(command):
    _source(command)
    command.add_argument("--json", action="store_true", help=_JSON)
    command.add_argument("out", help="folder to write or to resume, here or in an object store")
    command.add_argument(
        "--dtype",
        choices=DTYPES,
        default=DTYPES[0],
        help="type of the stored vectors (default float32)",
    )
    command.add_argument(
        "--runner",
        help="encode pictures or tars in any store by Apache Beam: DirectRunner, DataflowRunner, "
        "FlinkRunner, ...; its flags after --",
    )


def _index(command):
    command.add_argument(
        "--engine",
        choices=("memory", "lance"),
        default="memory",
        help="memory searches exactly; lance keeps on the disk what memory does not hold, by "
        "LanceDB (default memory)",
    )
    command.add_argument(
        "--similarity",
        type=_similarity,
        metavar="NAME",
        help=f"{', '.join(SIMILARITIES)} (default: the model's own)",
    )
    command.add_argument(
        "--candidates", type=int, help="number of candidates that are re-ranked exactly"
    )
    command.add_argument(
        "--probes",
        metavar="RUN",
        help="run folder or preset whose probes calibrate the index (default: the model's own)",
    )
    command.add_argument(
        "--pairs",
        metavar="FOLDER",
        help="your captioned photos, in any layout that own_pairs opens, to calibrate the index: "
        "300 or more replace the model's probes, fewer are added to them",
    )
    command.add_argument(
        "--correct-hubs",
        choices=("auto", "on", "off"),
        default="auto",
        help="rank items lower that are near to all of the probes' questions (CSLS); auto: where "
        "more probes then find their own item first (auto)",
    )
    command.add_argument(
        "--include-training",
        action="store_true",
        help="keep photos that the model was trained on",
    )


def _similarity(name):
    try:
        importlib.import_module("zoo.similarities.by_name").check_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return name
