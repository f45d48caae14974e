"""Makes a folder of images, or a table, searchable, and searches it.

    halo search build PHOTOS OUT --model PRESET_OR_RUN
    halo search query OUT "a small bird with a red crown"

`build` encodes what it is given into OUT/embeddings and builds OUT/index; OUT/search.json names
both. Rerun the command to resume. When the source has grown it encodes what is
new; a file or a model that was replaced is noticed, by size and time of change, then by contents.

    halo search update OUT [SOURCE]

does so for an index that is there, with the flags of its `build`. A folder or a CSV or TSV file
gives images; with `--captions`, a CSV, TSV or text file gives captions, which are then found by
`query OUT --image FILE`. Tar, TFRecord and Parquet files give either. For a model of stored vectors
the items are a file of them, and `query OUT --vector FILE --row 3` asks. `build` calibrates the
index by the model's probes, or those of `--probes RUN`, and `query` says how likely the first
answer is right, and whether to believe it, see `zoo.Retriever`. `--queries FILE` asks many
questions, `--json` answers in JSON.

The two steps of `build` are commands too, for collections that one machine does not hold:

    halo search encode "gs://B/photos-*.tar" gs://B/shards --model gs://B/model/1 \\
        --runner DataflowRunner -- --project=P --region=R --temp_location=gs://B/tmp
    halo search index gs://B/shards OUT --model PRESET_OR_RUN --kind ivfpq

`encode` writes shards of embeddings: in this process, by `--workers 4` of this machine, or by
Apache Beam on a cluster, `--runner`, whose own flags follow `--`. What cannot be read is set aside,
with the reason. `index` reads shards.
"""

import importlib

from zoo.cli import naming
from zoo.commands import search_flags


def main(argv=None):
    options = search_flags.parse(__doc__, argv)
    if options.command not in ("check", "query", "serve"):  # which may do without Keras
        importlib.import_module("zoo.training.registered")
    rooms = {
        "check": "zoo.retriever.check",
        "query": "zoo.retriever.query",
        "serve": "zoo.retriever.server",
    }
    room = rooms.get(options.command, "zoo.retriever.commands")
    with naming("--model", options.model):
        getattr(importlib.import_module(room), options.command)(options)
