"""What `halo search` does, a function for each of its commands; the flags: `halo_zoo.search`."""

import json
from pathlib import Path

from zoo import collection as collections
from zoo import similarities
from zoo.collection import Collection
from zoo.collection.growth import follow
from zoo.collection.work import FILES
from zoo.data import captioned_folder
from zoo.data.loaders import packaged_photos
from zoo.data.records.provenance import FILE_NAME as SKIPPED
from zoo.errors import InputError, require
from zoo.evaluation import probes_of
from zoo.evaluation.hub_gain import MOST_ITEMS
from zoo.evaluation.probes import with_own
from zoo.files.atomic import write_text
from zoo.files.vector_files import read_column
from zoo.models import Tower
from zoo.models.presets import from_preset, preset_folder, shown_pictures
from zoo.models.tower import weights_sha256
from zoo.retriever.parts import HUBS, bank_of
from zoo.retriever.retriever import Retriever
from zoo.retriever.training_photos import training_note
from zoo.retriever.write_towers import write_towers
from zoo.search import built, from_shards

# Of `build`, for `update`.
_REMEMBERED = (
    *("source", "model", "captions", "column", "names", "names_column", "shard_size"),
    *("batch_size", "skip_bad", "similarity", "candidates", "probes"),
    *("include_training", "exclude", "hubs", "correct_hubs", "pairs"),
)


def encode(options):
    """Encodes into shards, here or by a runner of Beam's."""
    if options.workers is not None and options.runner is not None:
        raise InputError("--workers is of this machine and --runner of others: choose one")
    tower, pieces, identity = _work(options)
    model, side, out = str(options.model), tower.side, options.out
    if options.runner is not None:
        require("apache_beam", extra="beam")
        from zoo.collection import beam

        handler = beam.TowerHandler(model, side, options.batch_size)
        more = options.dtype, options.beam_flags
        beam.encode_on(options.runner, pieces, handler, out, identity, *more)
    elif options.workers is not None:
        from zoo.collection.direct import encode_here

        more = options.workers, options.batch_size, options.dtype
        encode_here(pieces, model, side, out, identity, *more)
    else:
        collections.encode(pieces, tower, out, identity, options.dtype)
    done = Collection(out)
    counts = f"{len(done):,} items in {len(done.paths):,} shards"
    print(f"{out}: {counts}, {done.manifest['rejected']:,} rejected")


def index(options):
    """Builds the index of shards that are there."""
    shards = Collection(options.shards)
    options.model = options.model or shards.manifest["model"]
    options.captions = shards.manifest["side"] == "captions"
    with built.locked(options.out):
        _index(options, shards)


def build(options):
    """Encodes new items, then builds the index."""
    if Path(options.source).expanduser().exists():  # the same from wherever it is called
        options.source = str(Path(options.source).expanduser().resolve())
    if options.pairs is not None:
        options.pairs = str(Path(options.pairs).expanduser().resolve())
        _pairs(options)  # before all is encoded
    tower, pieces, identity = _work(options)
    _name_training(options, pieces)
    with built.locked(options.out):
        shards = follow(
            options.out,
            pieces,
            tower,
            identity,
            skip_bad=options.skip_bad,
            checksum=options.checksum,
        )
        made = {name: getattr(options, name) for name in _REMEMBERED}
        _index(options, shards, made)
        _tell_skipped(options.out, shards)


def update(options):
    """Encodes the source of an index again, as it is now, and rebuilds the index."""
    made = built.read_setup(options.out).get("build")
    if made is None:
        raise InputError(
            f"{options.out}: does not know its source: `index` built it, or an older version; "
            "call index or build again"
        )
    own = {name: getattr(options, name) for name in ("source", "model", "skip_bad", "exclude")}
    since = {"exclude": None, "hubs": "warn", "correct_hubs": "off", "pairs": None}
    for name, value in {**since, **made}.items():
        setattr(options, name, own.get(name) or value)
    build(options)


def _tell_skipped(out, shards):
    """Lists the items that could not be read, and prints how many."""
    rows = [
        json.dumps({"data": "items", "kind": "bad items", "where": name, "why": reason})
        for name, reason in shards.rejected()
    ]
    write_text(out / SKIPPED, "".join(f"{row}\n" for row in rows))
    if rows:
        total = len(shards) + len(rows)
        print(f"{out}: {len(rows):,} of {total:,} items cannot be read, see {out / SKIPPED}")


def _name_training(options, pieces):
    """Refuses a gallery of photos that the model was trained on, which attract every question."""
    if options.captions or options.include_training:
        return
    paths = [path for work in pieces if work.kind == FILES for path in work.items]
    note = training_note([path for path in paths if Path(path).is_file()], _probes(options))
    if note is not None:
        raise InputError(
            f"{options.source}: {note}; index other photos, or keep them with --include-training"
        )


def _probes(options):
    """The probes of `--probes`, else those of the model, or None."""
    if options.probes is None:
        return probes_of(options.model)
    if preset_folder(options.probes) is None:
        raise InputError(f"--probes {options.probes}: no such run folder or preset")
    probes = probes_of(options.probes)
    if probes is None:
        raise InputError(
            f"--probes {options.probes}: has no probes; the run's metrics.json says under "
            "'confidence' why not"
        )
    return probes


def _pairs(options):
    """The photos and captions of `--pairs`."""
    try:
        return captioned_folder(options.pairs)
    except InputError as error:
        raise InputError(f"--pairs {error}") from error


def _work(options):
    """The tower, the pieces of work, and what says which work it is."""
    side = "captions" if options.captions else "images"
    tower = Tower(options.model, side, options.batch_size)
    of_vectors = tower.reads == "vectors"
    pieces = collections.plan(
        options.source,
        side,
        options.shard_size,
        options.column,
        options.names_column,
        of_vectors=of_vectors,
        names=None if options.names is None else list(map(str, read_column(options.names))),
        exclude=options.exclude or (),
    )
    is_listed = all(work.kind == FILES for work in pieces)
    is_ours = (
        Path(options.source) == packaged_photos.FOLDER.resolve()
    )  # whose other files are ours too
    is_listed = is_listed and not is_ours
    others = collections.left_out(options.source, options.exclude or ()) if is_listed else {}
    if others:
        kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in others.items())
        count = sum(others.values())
        print(f"left out {count:,} {'file' if count == 1 else 'files'}: {kinds}")
    identity = {"model": str(options.model), "model_sha256": tower.model_sha256, "side": side}
    return tower, pieces, identity


def _index(options, shards, made=None):
    model = from_preset(options.model)
    similarity = model.similarity
    if options.similarity is not None:
        similarity = similarities.get(options.similarity, model)
    out, side, probes = options.out, shards.manifest["side"], _probes(options)
    if options.pairs is not None:  # before the index, which takes longer
        found = _pairs(options)
        print(found.recognised)
        probes = with_own(model, found, probes)
    folder = built.new_index(out)
    try:
        hubs = HUBS[options.correct_hubs]
        bank, gain = bank_of(
            hubs,
            lambda: from_shards.sample(shards, from_shards.filled(shards), MOST_ITEMS),
            similarity,
            side,
            probes,
        )
        index = from_shards.build(
            shards,
            similarity,
            folder,
            side,
            options.candidates,
            hubs=bank,
        )
    except (ValueError, TypeError) as error:
        raise InputError(f"{shards.folder}: {error}") from error
    setup = {"model": str(options.model), "captions": side == "captions", "index": folder.name}
    setup["model_sha256"] = shards.manifest.get("model_sha256")
    where = Path(shards.folder)
    inside = where.parent == out  # so that the folder can be moved
    setup["shards"] = where.name if inside else str(where.resolve())
    if made is not None:
        setup["build"] = made
    retriever = Retriever(model, index, probes)
    if options.hubs == "warn":
        _name_hubs(options, retriever, shards)
    retriever.save_judge(folder)
    sha256 = setup["model_sha256"] or weights_sha256(model)
    resizing = shown_pictures(model, options.model)
    setup["towers"], why_not = write_towers(out, model, index, sha256, resizing)
    built.commit(out, setup)
    print(f"{out}: {len(index):,} items")
    if index.hubs is not None and gain is not None:
        print(f"{out}: {gain}")
    print(f"{out}: {_calibrated(retriever)}")
    if why_not is not None:
        print(f"{out}: questions need TensorFlow: {why_not}")


def _name_hubs(options, retriever, shards):
    """Names the items that answer an implausible share of questions."""
    found = retriever.hubs()
    for hub, name in zip(found, shards.names([hub.id for hub in found]), strict=True):
        print(
            f"{options.out}: warning: {name} is among the first {hub.first} answers of "
            f"{hub.share:.0%} of the probes' questions"
        )


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
