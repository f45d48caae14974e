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
`query` says how likely the first answer is right, see `halo_search.Retriever`. `--queries FILE`
asks many questions, `--json` answers in JSON.

The two steps of `build` are commands too. `encode` writes Parquet files, here or on a cluster by
Apache Beam, whose own flags follow `--`; `index` reads them:

    halo search encode "gs://B/photos-*.tar" gs://B/parts --model PRESET \\
        --runner DataflowRunner -- --project=P --region=R --temp_location=gs://B/tmp
    halo search index gs://B/parts OUT --model PRESET
"""

import contextlib
import json
import sys

from halo_search.cli import build, encode, public, query, serve
from halo_search.cli.parser import OneLineParser
from halo_search.errors import InputError


def main(argv=None):
    """Runs a command of `halo search`."""
    options = parse(argv)
    options.reported = {}
    in_json = options.command not in ("query", "serve", "models") and options.json
    with contextlib.redirect_stdout(sys.stderr if in_json else sys.stdout):
        options.run(options)
    if in_json:
        print(json.dumps(options.reported))


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
    """The parser of all commands; each adds its flags, and the function that runs it."""
    parser = OneLineParser(prog="halo search", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for room in (encode, build, query, public, serve):
        room.add(commands)
    return parser
