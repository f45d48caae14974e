"""Makes a folder of images, or a table, searchable, and searches it.

    python -m zoo.search build PHOTOS OUT --model PRESET_OR_RUN
    python -m zoo.search query OUT "a small bird with a red crown"

`build` encodes what it is given into OUT/embeddings and builds OUT/index; OUT/search.json names
both. Stopped and called again it goes on where it was. When the source has grown it encodes what is
new; a file or a model that was replaced is noticed, by size and time of change, then by contents.

    python -m zoo.search update OUT [SOURCE]

does so for an index that is there, with the flags of its `build`. A folder or a CSV or TSV file
gives images; with `--captions`, a CSV, TSV or text file gives captions, which are then found by
`query OUT --image FILE`. Tar, TFRecord and Parquet files give either. For a model of stored vectors
the items are a file of them, and `query OUT --vector FILE --row 3` asks. With the model's
calibration, or that of `--calibration RUN`, `query` says how likely its first answer is right, and
whether it is declined: also where the model does not know such a question.

The two steps of `build` are commands too, for collections that one machine does not hold:

    python -m zoo.search encode "gs://B/photos-*.tar" gs://B/shards --model gs://B/model/1 \\
        --runner DataflowRunner -- --project=P --region=R --temp_location=gs://B/tmp
    python -m zoo.search index gs://B/shards OUT --model PRESET_OR_RUN --kind ivfpq

`encode` writes shards of embeddings: in this process, by `--workers 4` processes of Apache Beam, or
by the `--runner` of a cluster, whose own flags follow `--`. What cannot be read is set aside, with
the reason. `index` reads shards.
"""

from pathlib import Path

import zoo
from zoo import collection as collections
from zoo.cli import run
from zoo.collection import Collection, Encoder, Work
from zoo.collection.encoder import reads_vectors
from zoo.collection.growth import follow
from zoo.collection.work import FILES, ROWS, TEXTS
from zoo.confidence import Confidence
from zoo.data.files import SUFFIXES
from zoo.data.vector_files import read_column
from zoo.errors import InputError, require
from zoo.evaluation import resizing_of
from zoo.search import built, calibrated, flags, from_shards

CALIBRATION = "calibration.json"
# Of `build`, for `update`.
_REMEMBERED = (
    *("source", "model", "captions", "column", "names", "names_column", "shard_size"),
    *("batch_size", "skip_bad", "kind", "similarity", "candidates", "memory", "calibration"),
)


def main(argv=None):
    options = flags.parse(__doc__, argv)
    commands = {"encode": encode, "index": index, "build": build, "update": update, "query": query}
    commands[options.command](options)


def encode(options):
    """Encodes into shards, here or by a runner of Beam's."""
    if options.workers is not None and options.runner is not None:
        raise InputError("--workers is of this machine and --runner of others: choose one")
    encoder, pieces, identity = _work(options)
    model, side, out = str(options.model), encoder.side, options.out
    if options.runner is not None:
        require("apache_beam", extra="beam")
        from zoo.collection import beam

        handler = beam.EncoderHandler(model, side, options.batch_size)
        more = options.dtype, options.beam_flags
        beam.encode_on(options.runner, pieces, handler, out, identity, *more)
    elif options.workers is not None:
        from zoo.collection.direct import encode_here

        more = options.workers, options.batch_size, options.dtype
        encode_here(pieces, model, side, out, identity, *more)
    else:
        collections.encode(pieces, encoder, out, identity, options.dtype)
    done = Collection(out)
    counts = f"{len(done):,} items in {len(done.paths):,} shards"
    print(f"{out}: {counts}, {done.manifest['rejected']:,} rejected")


def index(options):
    """Builds the index of shards that are there."""
    shards = Collection(options.shards)
    options.model = options.model or shards.manifest["model"]
    options.captions = shards.manifest["side"] == "captions"
    with built.locked(options.out):
        _index(options, shards, calibrated.calibration_of(options))


def build(options):
    """Encodes what is new, then builds the index."""
    calibration = calibrated.calibration_of(options)
    if Path(options.source).expanduser().exists():  # the same from wherever it is called
        options.source = str(Path(options.source).expanduser().resolve())
    encoder, pieces, identity = _work(options)
    with built.locked(options.out):
        shards = follow(options.out, pieces, encoder, identity, skip_bad=options.skip_bad)
        made = {name: getattr(options, name) for name in _REMEMBERED}
        _index(options, shards, calibration, made)


def update(options):
    """Builds again what is there, of its source as it is now."""
    made = built.read_setup(options.out).get("build")
    if made is None:
        raise InputError(
            f"{options.out}: does not know its source: `index` built it, or an older version; "
            "call index or build again"
        )
    own = {"source": options.source, "model": options.model, "skip_bad": options.skip_bad}
    for name, value in made.items():
        setattr(options, name, own.get(name) or value)
    build(options)


def query(options):
    """Encodes one query and prints what the index finds."""
    if [options.text, options.image, options.vector].count(None) != 2:
        raise InputError("query: expected one of a text, --image FILE and --vector FILE")
    if options.text is not None and _is_picture(options.text):
        raise InputError(
            f"query: {options.text!r} is an image file, not a caption; search with "
            f"--image {options.text}"
        )
    setup, shards, index = built.load(options.folder)
    name = options.model or setup["model"]
    model = zoo.from_preset(name)
    other_side = "images" if setup["captions"] else "captions"
    embedding = _asked(options, model, other_side, resizing_of(name))
    if options.max_uncertainty is None and (options.folder / CALIBRATION).is_file():
        confidence = Confidence.load(options.folder / CALIBRATION)
        texts = None if options.text is None else [options.text]
        for line in calibrated.lines(confidence, index, model, embedding, texts, setup):
            print(line)
    k = min(options.k, len(index))
    try:
        scores, ids = index.search(embedding, k, max_uncertainty=options.max_uncertainty)
    except ValueError as error:
        raise InputError(f"{options.folder}: {error}") from error
    found = ids[0] >= 0
    named = zip(scores[0][found], shards.names(ids[0][found]), strict=True)
    for rank, (score, name) in enumerate(named, start=1):
        print(f"{rank:4d} {score:12.5g}  {name}")


def _work(options):
    """The encoder, the pieces of work, and what says which work it is."""
    side = "captions" if options.captions else "images"
    encoder = Encoder.load(options.model, side, options.batch_size)
    pieces = collections.plan(
        options.source,
        side,
        options.shard_size,
        options.column,
        options.names_column,
        of_vectors=encoder.of_vectors,
        names=None if options.names is None else list(map(str, read_column(options.names))),
    )
    others = {} if encoder.of_vectors else collections.left_out(options.source)
    if others:
        kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in others.items())
        count = sum(others.values())
        print(f"left out {count:,} {'file' if count == 1 else 'files'} of other kinds: {kinds}")
    identity = {"model": str(options.model), "model_sha256": encoder.model_sha256, "side": side}
    return encoder, pieces, identity


def _index(options, shards, calibration, made=None):
    model = zoo.from_preset(options.model)
    similarity = model.similarity
    if options.similarity is not None:
        similarity = zoo.similarities.get(options.similarity, model)
    out, side = options.out, shards.manifest["side"]
    folder = built.new_index(out)
    try:
        index = from_shards.build(
            shards,
            similarity,
            folder,
            options.kind,
            side,
            options.candidates,
            memory=options.memory,
            moments=calibration is not None,
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
    if calibration is None:
        (out / CALIBRATION).unlink(missing_ok=True)  # of an earlier build
    else:
        calibration.save(out / CALIBRATION)
        setup["other_gallery"] = calibrated.other_gallery(calibration, shards)
    built.commit(out, setup)
    effort = f", effort {index.effort}" if index.effort else ""
    print(f"{out}: {len(index):,} items, {options.kind}{effort}")


def _asked(options, model, other_side, resizing):
    """The embedding of the one query; a picture may ask for pictures, and a text for texts."""
    if options.vector is None and reads_vectors(model, other_side):
        raise InputError(
            f"query: the model reads vectors of {other_side}; search with --vector FILE --row "
            "NUMBER"
        )
    if options.vector is not None:
        side, row = other_side, options.row
        work = Work(0, ROWS, (f"row {row}",), (row, row + 1), path=options.vector)
    elif options.image is not None:
        side, work = "images", Work(0, FILES, (options.image,), (options.image,))
    else:
        side, work = "captions", Work(0, TEXTS, (options.text,), (options.text,))
    encoded = Encoder(model, side, **resizing)(work)
    for item, reason in encoded.rejected:
        raise InputError(f"{item}: {reason}")
    return encoded.arrays


def _is_picture(text):
    """Whether a query is a file, or the name of one, and no caption."""
    name = text.strip()
    is_name = Path(name).suffix.lower() in SUFFIXES and len(name.split()) == 1
    return is_name or (len(name) < 256 and Path(name).is_file())


if __name__ == "__main__":
    run(main)
