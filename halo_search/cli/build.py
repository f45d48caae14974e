"""`halo search build`, `update` and `index`: a searchable, calibrated gallery of what is
encoded."""

import functools
import sys
from pathlib import Path

from halo_search import collection, presets
from halo_search.cli.checks import check_index, check_model, check_path, check_run
from halo_search.cli.encode import (
    JSON,
    add_source,
    check_items,
    encoded,
    identity_of,
    items_of,
    report_count,
    tower_of,
)
from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import naming
from halo_search.collection.encoding import continues
from halo_search.collection.part_files import NPZ
from halo_search.collection.sources import PICTURES
from halo_search.errors import InputError
from halo_search.files.json_files import read_object
from halo_search.files.written import Written
from halo_search.index import built
from halo_search.index.similarities import BY_NAME, NAMES
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.hubs import MOST_ITEMS, bank_of
from halo_search.retriever.retriever import Retriever
from halo_search.retriever.training_photos import training_note
from halo_search.towers import keras_models

_HUBS = {"auto": "auto", "on": True, "off": False}  # of --correct-hubs, as of `Retriever.build`
# Of `build`, for `update`.
_REMEMBERED = (
    *("source", "model", "captions", "column", "names", "shard_size", "batch_size", "skip_bad"),
    *("similarity", "candidates", "probes", "include_training", "correct_hubs"),
    *("pairs", "engine"),
)


def add(commands):
    """The three commands with their flags."""
    parts = commands.add_parser("index", help="index what `encode` wrote")
    parts.add_argument("shards", help="folder that `encode` wrote")
    parts.add_argument("out", type=Path, help="folder to write")
    parts.add_argument("--model", help="model of the queries (default: that of the parts)")
    parts.add_argument("--json", action="store_true", help=JSON)
    _add_index(parts)
    parts.set_defaults(run=index)
    made = commands.add_parser("build", help="encode and index")
    add_source(made)
    made.add_argument("out", type=Path, help="folder to write or to resume")
    _add_building(made)
    _add_index(made)
    made.set_defaults(run=build)
    again = commands.add_parser("update", help="encode new and changed items, then index again")
    again.add_argument("out", type=Path, help="folder that `build` wrote")
    again.add_argument("source", nargs="?", help="new source, if it has moved since `build`")
    again.add_argument("--model", help="new model path, or another model")
    _add_building(again)
    again.set_defaults(run=update)


def _add_building(command):
    """The flags of `build` and `update` beside those of the source and the index."""
    command.add_argument("--json", action="store_true", help=JSON)
    command.add_argument(
        "--yes", action="store_true", help="drop more than half of the items without asking"
    )
    command.add_argument("--skip-bad", action="store_true", help="leave out unreadable images")


def _add_index(command):
    """The flags that say how an index is searched and calibrated."""
    command.add_argument(
        "--engine",
        choices=("memory", "lance"),
        default="memory",
        help="memory searches exactly; lance keeps on the disk what memory does not hold, by "
        "LanceDB (default memory)",
    )
    command.add_argument(
        "--similarity",
        metavar="NAME",
        help=f"{', '.join(BY_NAME)}, or with the extra `models` any other of zoo.similarities "
        "(default: the model's own)",
    )
    command.add_argument(
        "--candidates", type=whole_number(), help="number of candidates that are re-ranked exactly"
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


def index(options):
    """Builds the index of parts that are encoded already."""
    _check(options)
    Written(options.out, built.SETUP).check()
    parts = collection.Collection(options.shards)
    options.model = presets.absolute(options.model or parts.manifest["model"])
    options.captions = parts.manifest["side"] == "captions"
    with naming("--model", options.model):
        model = GalleryModel.of(options.model)
    with built.locked(options.out) as written:
        report_count(options, parts)
        _index(options, written, parts, model)


def build(options):
    """Encodes new items, then builds the index."""
    _check(options)
    check_items(options)
    # This and all else that needs no model, before all is encoded.
    Written(options.out, built.SETUP).check()
    if Path(options.source).expanduser().exists():  # the same from wherever it is called
        options.source = str(Path(options.source).expanduser().resolve())
    options.model = presets.absolute(options.model)
    if options.probes is not None:
        options.probes = presets.absolute(options.probes)
    if options.pairs is not None:
        options.pairs = str(Path(options.pairs).expanduser().resolve())
        keras_models().captioned_folder(options.pairs)
    with naming("--model", options.model):
        model = GalleryModel.of(options.model)
    tower = tower_of(options, model)
    items = items_of(options, tower)
    _refuse_training(options, items, model)
    identity = identity_of(options, tower)
    with built.locked(options.out) as written:
        _agree(options, written, items.names)
        folder = built.parts_for(written, lambda folder: continues(folder, identity))
        parts = encoded(options, tower, items, folder, suffix=NPZ)
        _agree(options, written, set(items.names) - {name for name, _ in parts.rejected()})
        made = {name: getattr(options, name) for name in _REMEMBERED}
        report_count(options, parts, written, items.others)
        _index(options, written, parts, model, made)


def update(options):
    """Encodes the source of an index again, as it is now, and rebuilds the index."""
    check_index(options.out)
    check_path(options.source, f"{options.source}: no such folder of images, or CSV or TSV file")
    made = built.read_setup(options.out).get("build")
    if made is None:
        raise InputError(
            f"{options.out}: does not know its source: `index` built it, or `save` wrote it; call "
            "index or build again"
        )
    given = {name: getattr(options, name) for name in ("source", "model", "skip_bad")}
    for name, value in {"engine": "memory", **made}.items():
        setattr(options, name, given.get(name) or value)
    build(options)


def _check(options):
    """Raises InputError for numbers out of range, and names and paths that are not there, before a
    model opens."""
    for name in ("shard_size", "batch_size"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} must be at least 1; received {value}")
    with naming("--model", options.model):
        check_model(options.model)
    if options.probes is not None:
        check_run(options.probes, f"--probes {options.probes}: no such run folder or preset")
    check_path(options.pairs, f"--pairs {options.pairs}: no such file or folder")
    if options.similarity is not None and options.similarity not in NAMES:
        raise InputError(
            f"--similarity: the similarity must be one of {', '.join(NAMES)}; received "
            f"{options.similarity!r}"
        )


def _agree(options, written, names):
    """Asks before more than half of what the source gave is dropped, as of a disk not mounted."""
    setup = written.content
    is_same = (setup.get("build") or {}).get("source") == options.source
    if options.yes or not isinstance(setup.get("index"), str):
        return
    if options.command != "update" and not is_same:  # which the user has said
        return
    before = set(read_object(options.out / setup["index"] / built.NAMES).values())
    gone = len(before.difference(names))
    if 2 * gone <= len(before):
        return
    warning = (
        f"{options.out}: {gone:,} of {len(before):,} items are not in {options.source} any more"
    )
    if not sys.stdin.isatty():
        raise InputError(f"{warning}; drop them with --yes")
    print(f"{warning}. Drop them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError(f"{options.out}: nothing was changed")
    options.yes = True


def _refuse_training(options, items, model):
    """Refuses a gallery of photos that the model was trained on, which attract every question."""
    if items.kind != PICTURES or options.include_training:
        return
    paths = [path for path in items.values if Path(path).is_file()]
    note = training_note(paths, _probes(options, model))
    if note is not None:
        raise InputError(
            f"{options.source}: {note}; index other photos, or keep them with --include-training"
        )


def _probes(options, model):
    """The probes of `--probes`, else those of the model, or None."""
    if options.probes is None:
        return model.probes()
    probes = presets.probes_of(options.probes)
    if probes is None and options.probes not in presets.names():
        probes = keras_models().probes_of(options.probes)
    if probes is None:
        raise InputError(
            f"--probes {options.probes}: has no probes; the run's metrics.json says under "
            "'confidence' why not"
        )
    return probes


def _index(options, written, parts, model, made=None):
    """Builds the index of encoded parts, its judge and its towers, and makes them the gallery."""
    out, side, probes = options.out, parts.manifest["side"], _probes(options, model)
    similarity = model.similarity_named(options.similarity)
    if options.pairs is not None:  # before the index, which takes longer
        print(keras_models().captioned_folder(options.pairs).recognised)
        probes = model.opened.with_own(options.pairs, probes)
    try:
        sample = functools.partial(built.sample, parts, MOST_ITEMS)
        bank, gain = bank_of(_HUBS[options.correct_hubs], sample, similarity, side, probes)
        more = side, options.candidates, bank
        if options.engine == "lance":  # which writes at once; `Retriever.write` links its files
            more = *more, built.fresh(written, built.INDEX)
        index, names = built.index_of(parts, similarity, *more)
    except (ValueError, TypeError) as error:
        raise InputError(f"{parts.folder}: {error}") from error
    probes = model.general_probes() if probes is None else probes
    retriever = Retriever(model, index, probes, names)
    note = None if retriever.judge.at_chance else retriever.hub_note()  # all at chance have hubs
    if note is not None:
        print(f"{out}: warning: {note}")
    setup = _setup(options, parts, made)
    towers, why_not = built.packaged_towers(model), None
    if towers is None:
        towers, why_not = model.opened.write_towers(written, index)
    retriever.write(written, {**setup, "towers": towers})
    print(f"{out}: {len(index):,} items")
    options.reported["items"] = len(index)
    if index.hubs is not None and gain is not None:
        print(f"{out}: {gain}")
    print(f"{out}: {_calibrated(retriever)}")
    if why_not is not None:
        print(f"{out}: questions need Keras: {why_not}")


def _setup(options, parts, made):
    """What `search.json` says of the model, the parts and the flags."""
    where = Path(parts.folder)
    is_inside = where.parent == options.out  # so that the folder can be moved
    return {
        "model": str(options.model),
        "model_sha256": parts.manifest.get("model_sha256"),
        "parts": {"folder": where.name if is_inside else str(parts.folder), "files": parts.parts},
        **({} if made is None else {"build": made}),
    }


def _calibrated(retriever):
    """What the probes say of the gallery, in words."""
    confidence = retriever.confidence
    if confidence is None:
        return f"not calibrated: {retriever.judge.why_not}"
    right = confidence.num_correct / confidence.num_queries
    return (
        f"calibrated by {confidence.num_queries:,} probes, of which {right:.0%} find their own "
        f"item first. {retriever.judge.note}".rstrip(". ")
    )
