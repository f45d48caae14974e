"""What `halo search` does, a function for each of its commands; the flags: `halo_zoo.search`."""

import dataclasses
import json
import sys
from pathlib import Path

from zoo import collection, similarities
from zoo.cli.bounds import absolute
from zoo.collection.encoding import continues
from zoo.collection.parts import MANIFEST
from zoo.collection.sources import PICTURES, is_remote
from zoo.data import captioned_folder
from zoo.data.loaders import packaged_photos
from zoo.errors import InputError, require
from zoo.evaluation import probes_of
from zoo.evaluation.gallery import MOST_ITEMS
from zoo.evaluation.probes import general_probes, with_own
from zoo.files.atomic import write_text
from zoo.files.folders import counted
from zoo.files.json_files import read_object
from zoo.files.vector_files import read_column
from zoo.files.written import Written
from zoo.models import Tower
from zoo.models.presets import from_preset, shown_pictures
from zoo.models.tower import weights_sha256
from zoo.retriever.parts import HUBS, bank_of, training_note
from zoo.retriever.retriever import Retriever
from zoo.retriever.write_towers import write_towers
from zoo.search import built

# Of `build`, for `update`.
_REMEMBERED = (
    *("source", "model", "captions", "column", "names", "shard_size", "batch_size", "skip_bad"),
    *("similarity", "candidates", "probes", "include_training", "correct_hubs"),
    *("pairs", "engine"),
)


def encode(options):
    """Encodes into parts, here or by a runner of Beam's."""
    tower, items = _tower(options), None
    if options.runner is None:
        items = _items(options, tower)
        found = _encoded(options, tower, items, options.out, options.dtype)
    else:
        require("apache_beam", extra="beam")
        from zoo.collection.beam import encode_on

        if options.names or options.column:
            raise InputError("--runner reads pictures or tars: no --names or --column")
        source, model = options.source, str(options.model)
        sizes = options.dtype, options.batch_size, options.shard_size, options.beam_flags
        what = source, model, tower.side, options.out, _identity(options, tower)
        found = encode_on(options.runner, *what, *sizes)
    _tell_count(options, found, None if options.runner else Written(options.out, MANIFEST), items)


def index(options):
    """Builds the index of parts that are encoded already."""
    Written(options.out, built.SETUP).check()
    parts = collection.Collection(options.shards)
    options.model = absolute(options.model or parts.manifest["model"])
    options.captions = parts.manifest["side"] == "captions"
    with built.locked(options.out) as written:
        _tell_count(options, parts)
        _index(options, written, parts)


def build(options):
    """Encodes new items, then builds the index."""
    # This and all else that needs no model, before all is encoded.
    Written(options.out, built.SETUP).check()
    if Path(options.source).expanduser().exists():  # the same from wherever it is called
        options.source = str(Path(options.source).expanduser().resolve())
    options.model = absolute(options.model)
    if options.probes is not None:
        options.probes = absolute(options.probes)
    if options.pairs is not None:
        options.pairs = str(Path(options.pairs).expanduser().resolve())
        captioned_folder(options.pairs)
    tower = _tower(options)
    items = _items(options, tower)
    _name_training(options, items)
    identity = _identity(options, tower)
    with built.locked(options.out) as written:
        _agree(options, written, items.names)
        folder = built.parts_for(written, lambda folder: continues(folder, identity))
        parts = _encoded(options, tower, items, folder)
        _agree(options, written, set(items.names) - {name for name, _ in parts.rejected()})
        made = {name: getattr(options, name) for name in _REMEMBERED}
        _tell_count(options, parts, written, items)
        _index(options, written, parts, made, tower.model)


def update(options):
    """Encodes the source of an index again, as it is now, and rebuilds the index."""
    made = built.read_setup(options.out).get("build")
    if made is None:
        raise InputError(
            f"{options.out}: does not know its source: `index` built it, or `save` wrote it; call "
            "index or build again"
        )
    own = {name: getattr(options, name) for name in ("source", "model", "skip_bad")}
    for name, value in {"engine": "memory", **made}.items():
        setattr(options, name, own.get(name) or value)
    build(options)


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
    said = f"{options.out}: {gone:,} of {len(before):,} items are not in {options.source} any more"
    if not sys.stdin.isatty():
        raise InputError(f"{said}; drop them with --yes")
    print(f"{said}. Drop them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError(f"{options.out}: nothing was changed")
    options.yes = True


def _tell_count(options, parts, written=None, items=None):
    """Prints what was seen, taken and left, and lists what was left."""
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
    options.said.update(count)


def _name_training(options, items):
    """Refuses a gallery of photos that the model was trained on, which attract every question."""
    if items.kind != PICTURES or options.include_training:
        return
    note = training_note([path for path in items.values if Path(path).is_file()], _probes(options))
    if note is not None:
        raise InputError(
            f"{options.source}: {note}; index other photos, or keep them with --include-training"
        )


def _probes(options):
    """The probes of `--probes`, else those of the model, or None."""
    if options.probes is None:
        return probes_of(options.model)
    probes = probes_of(options.probes)
    if probes is None:
        raise InputError(
            f"--probes {options.probes}: has no probes; the run's metrics.json says under "
            "'confidence' why not"
        )
    return probes


def _tower(options):
    return Tower(options.model, "captions" if options.captions else "images", options.batch_size)


def _identity(options, tower):
    model, sha256 = str(options.model), tower.model_sha256
    return {"model": model, "model_sha256": sha256, "side": tower.side}


def _items(options, tower):
    """The items of the source."""
    if is_remote(options.source):
        raise InputError(f"{options.source}: an object store is read by `encode --runner` only")
    names = None if options.names is None else list(map(str, read_column(options.names)))
    more = options.column, names, tower.reads == "vectors"
    items = collection.read_source(options.source, tower.side, *more)
    # The other files of the package's own folder are ours too.
    is_ours = Path(options.source) == packaged_photos.FOLDER.resolve()
    return dataclasses.replace(items, others=()) if is_ours else items


def _encoded(options, tower, items, folder, dtype="float32"):
    made = dtype, options.shard_size, getattr(options, "skip_bad", True)
    return collection.encode(items, tower, folder, _identity(options, tower), *made)


def _index(options, written, parts, made=None, model=None):
    model = from_preset(options.model) if model is None else model
    name = options.similarity
    similarity = model.similarity if name is None else similarities.get(name, model)
    out, side, probes = options.out, parts.manifest["side"], _probes(options)
    if options.pairs is not None:  # before the index, which takes longer
        found = captioned_folder(options.pairs)
        print(found.recognised)
        probes = with_own(model, found, probes)
    try:
        few = lambda: built.sample(parts, MOST_ITEMS)  # noqa: E731
        bank, gain = bank_of(HUBS[options.correct_hubs], few, similarity, side, probes)
        more = side, options.candidates, bank
        if options.engine == "lance":  # which writes at once; `Retriever.write` links its files
            more = *more, built.fresh(written, built.INDEX)
        index, names = built.index_of(parts, similarity, *more)
    except (ValueError, TypeError) as error:
        raise InputError(f"{parts.folder}: {error}") from error
    probes = general_probes(model) if probes is None else probes
    retriever = Retriever(model, index, probes, names)
    note = None if retriever.judge.at_chance else retriever.hub_note()  # all at chance have hubs
    if note is not None:
        print(f"{out}: warning: {note}")
    where = Path(parts.folder)
    is_inside = where.parent == out  # so that the folder can be moved
    setup = {
        "model": str(options.model),
        "model_sha256": parts.manifest.get("model_sha256"),
        "parts": {"folder": where.name if is_inside else str(parts.folder), "files": parts.parts},
        **({} if made is None else {"build": made}),
    }
    resizing = shown_pictures(model, options.model)
    sha256 = setup["model_sha256"] or weights_sha256(model)
    towers, why_not = write_towers(written, model, index, sha256, resizing)
    retriever.write(written, {**setup, "towers": towers})
    print(f"{out}: {len(index):,} items")
    options.said["items"] = len(index)
    if index.hubs is not None and gain is not None:
        print(f"{out}: {gain}")
    print(f"{out}: {_calibrated(retriever)}")
    if why_not is not None:
        print(f"{out}: questions need TensorFlow: {why_not}")


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
