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

The two steps of `build` are commands too. `encode` writes Parquet files, with `--cluster` on the
nodes of a Ray cluster; `index` reads them:

    halo search encode "s3://BUCKET/photos-*.tar" s3://BUCKET/parts --model PRESET --cluster auto
    halo search index s3://BUCKET/parts OUT --model PRESET
"""

import contextlib
import json
import sys

from halo_search.cli import build, encode, public, query, serve
from halo_search.cli.parser import OneLineParser


def main(argv=None):
    """Runs a command of `halo search`."""
    options = parser().parse_args(argv)
    options.reported = {}
    in_json = options.command not in ("query", "serve", "models") and options.json
    with contextlib.redirect_stdout(sys.stderr if in_json else sys.stdout):
        options.run(options)
    if in_json:
        print(json.dumps(options.reported))


def parser():
    """The parser of all commands; each adds its flags, and the function that runs it."""
    parser = OneLineParser(prog="halo search", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for room in (encode, build, query, public, serve):
        room.add(commands)
    return parser
