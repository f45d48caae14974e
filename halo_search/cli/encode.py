"""`halo search encode`: encodes a source into Parquet parts, on this machine or on a cluster."""

import dataclasses
import json
from pathlib import Path

from halo_search import collection
from halo_search.cli.checks import check_model, check_path, check_source
from halo_search.cli.parser import naming
from halo_search.collection.encoding import DTYPES
from halo_search.collection.part_files import PARQUET, check_format
from halo_search.collection.parts import MANIFEST
from halo_search.errors import InputError, require
from halo_search.files.folders import counted
from halo_search.files.stores import is_remote, write_file, written_in
from halo_search.files.vector_files import read_column
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
        "--cluster",
        metavar="auto|ADDRESS",
        help="encode on the nodes of a Ray cluster, also tars and object stores: its address, "
        "host:port, or auto, which starts one on this machine where none runs",
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
    """Encodes into parts, on this machine or on a cluster."""
    if options.cluster is not None:
        _encode_on_cluster(options)
        return
    check_format(PARQUET)
    check_items(options)
    with naming("--model", options.model):
        check_model(options.model)
        model = GalleryModel.of(options.model)
    tower = tower_of(options, model)
    items = items_of(options, tower)
    parts = encoded(options, tower, items, options.out, options.dtype)
    report_count(options, parts, written_in(options.out, MANIFEST), items.others)


def _encode_on_cluster(options):
    """Encodes on the nodes of a Ray cluster."""
    require("ray", extra="cluster")
    from halo_search.collection.cluster import encode_on_cluster  # which loads Ray

    if not is_remote(options.source):
        check_path(options.source, f"{options.source}: no such file or folder")
    with naming("--model", options.model):
        check_model(options.model)
    parts = encode_on_cluster(
        options.source,
        options.model,
        options.out,
        options.cluster,
        side="captions" if options.captions else "images",
        column=options.column,
        names=_names_of(options),
        dtype=options.dtype,
        part_size=options.shard_size,
        batch_size=options.batch_size,
    )
    report_count(options, parts, written_in(options.out, MANIFEST))


def check_items(options):
    """Raises InputError for a source that is not there or holds nothing, before a model opens."""
    kind = "file" if options.captions else "folder of images, or CSV or TSV file"
    check_path(options.source, f"{options.source}: no such {kind}")
    check_source(options.source, options.captions, options.column)


def tower_of(options, model):
    """The tower of the side that is encoded."""
    tower = model.tower("captions" if options.captions else "images")
    if options.batch_size is not None:
        tower.batch_size = options.batch_size
    return tower


def identity_of(options, tower):
    """Values that identify the model and the side that it embeds."""
    model, sha256 = str(options.model), tower.model_sha256
    return {"model": model, "model_sha256": sha256, "side": tower.side}


def items_of(options, tower):
    """The items of the source."""
    if is_remote(options.source):
        raise InputError(f"{options.source}: an object store is read by `encode --cluster` only")
    more = options.column, _names_of(options), tower.reads == "vectors"
    items = collection.read_source(options.source, tower.side, *more)
    # The other files of the package's own folder are ours too.
    is_ours = Path(options.source) == FOLDER.resolve()
    return dataclasses.replace(items, others=()) if is_ours else items


def _names_of(options):
    """The names of `--names`, or None."""
    return None if options.names is None else list(map(str, read_column(options.names)))


def encoded(options, tower, items, folder, dtype="float32", suffix=PARQUET):
    """Encodes what is new of the items into parts."""
    return collection.encode(
        items,
        tower,
        folder,
        identity_of(options, tower),
        dtype=dtype,
        part_size=options.shard_size,
        skip_bad=getattr(options, "skip_bad", True),
        suffix=suffix,
    )


def report_count(options, parts, written=None, others=()):
    """Prints what was seen, taken and left out, and lists what was left out."""
    count, listed = parts.manifest["count"], ""
    if written is not None:
        bad = [("bad items", name, why) for name, why in parts.rejected()]
        bad += [("other files", name, why) for name, why in others]
        rows = [
            json.dumps({"data": "items", "kind": kind, "where": name, "why": why})
            for kind, name, why in bad
        ]
        written.claim(built.SKIPPED)
        path = f"{written.folder}/{built.SKIPPED}"
        write_file(path, "".join(f"{row}\n" for row in rows).encode())
        listed = f"; see {path}" if rows else ""
    print(f"{options.out}: {counted(count)}{listed}")
    options.reported.update(count)
