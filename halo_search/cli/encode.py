"""`halo search encode`: encodes a source into Parquet parts, on this machine or on a cluster."""

import dataclasses
import json
from pathlib import Path

from halo_search import collection
from halo_search.cli.checks import check_model, check_path, check_source
from halo_search.cli.parser import naming
from halo_search.collection.encoding import DTYPES
from halo_search.collection.parts import MANIFEST
from halo_search.collection.sources import is_remote
from halo_search.errors import InputError, require
from halo_search.files.atomic import write_text
from halo_search.files.folders import counted
from halo_search.files.vector_files import read_column
from halo_search.files.written import Written
from halo_search.index import built
from halo_search.photos import FOLDER
from halo_search.retriever.gallery_model import GalleryModel

JSON = "print one JSON object at the end, and all else on standard error"


def add(commands):
    """The command with its flags."""
    command = commands.add_parser("encode", help="encode into Parquet files, here or on a cluster")
    add_source(command)
    command.add_argument("--json", action="store_true", help=JSON)
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
    command.set_defaults(run=encode)


def add_source(command):
    """The flags that say what is encoded, and by which model."""
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
    command.add_argument(
        "--batch-size", type=int, help="pictures per batch (default: as suits the model)"
    )


def encode(options):
    """Encodes into parts, here or by a runner of Beam's."""
    if options.runner is None:
        check_items(options)
    with naming("--model", options.model):
        check_model(options.model)
        model, items = GalleryModel.of(options.model), None
    tower = tower_of(options, model)
    if options.runner is None:
        items = items_of(options, tower)
        parts = encoded(options, tower, items, options.out, options.dtype)
    else:
        parts = _encoded_by_beam(options, tower)
    report_count(options, parts, None if options.runner else Written(options.out, MANIFEST), items)


def check_items(options):
    """Raises InputError for a source that is not there or holds nothing, before a model opens."""
    kind = "file" if options.captions else "folder of images, or CSV or TSV file"
    check_path(options.source, f"{options.source}: no such {kind}")
    check_source(options.source, options.captions, options.column)


def _encoded_by_beam(options, tower):
    require("apache_beam", extra="beam")
    from halo_search.collection.beam import encode_on  # which loads Beam

    if options.names or options.column:
        raise InputError("--runner reads pictures or tars: no --names or --column")
    source, model = options.source, str(options.model)
    sizes = options.dtype, options.batch_size, options.shard_size, options.beam_flags
    what = source, model, tower.side, options.out, identity_of(options, tower)
    return encode_on(options.runner, *what, *sizes)


def tower_of(options, model):
    """The tower of the side that is encoded."""
    tower = model.tower("captions" if options.captions else "images")
    if options.batch_size is not None:
        tower.batch_size = options.batch_size
    return tower


def identity_of(options, tower):
    """What tells vectors of one model from others'."""
    model, sha256 = str(options.model), tower.model_sha256
    return {"model": model, "model_sha256": sha256, "side": tower.side}


def items_of(options, tower):
    """The items of the source."""
    if is_remote(options.source):
        raise InputError(f"{options.source}: an object store is read by `encode --runner` only")
    names = None if options.names is None else list(map(str, read_column(options.names)))
    more = options.column, names, tower.reads == "vectors"
    items = collection.read_source(options.source, tower.side, *more)
    # The other files of the package's own folder are ours too.
    is_ours = Path(options.source) == FOLDER.resolve()
    return dataclasses.replace(items, others=()) if is_ours else items


def encoded(options, tower, items, folder, dtype="float32"):
    """Encodes what is new of the items into parts."""
    made = dtype, options.shard_size, getattr(options, "skip_bad", True)
    return collection.encode(items, tower, folder, identity_of(options, tower), *made)


def report_count(options, parts, written=None, items=None):
    """Prints what was seen, taken and left out, and lists what was left out."""
    count, listed = parts.manifest["count"], ""
    if written is not None:
        bad = [("bad items", name, why) for name, why in parts.rejected()]
        bad += [("other files", name, why) for name, why in items.others]
        rows = [
            json.dumps({"data": "items", "kind": kind, "where": name, "why": why})
            for kind, name, why in bad
        ]
        written.claim(built.SKIPPED)
        write_text(written.folder / built.SKIPPED, "".join(f"{row}\n" for row in rows))
        listed = f"; see {written.folder / built.SKIPPED}" if rows else ""
    print(f"{options.out}: {counted(count)}{listed}")
    options.reported.update(count)
