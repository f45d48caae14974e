"""Makes a folder of images, or a table, searchable, and searches it.

    python -m zoo.search build PHOTOS OUT --model PRESET_OR_RUN
    python -m zoo.search query OUT "a small bird with a red crown"

`build` encodes what it is given into OUT/embeddings and builds OUT/index. Stopped and called
again it goes on where it was. A folder or a CSV or TSV file gives images; with `--captions`, a
CSV, TSV or text file gives captions, which are then found by `query OUT --image FILE`. For a model
of stored vectors the items are a file of them, and `query OUT --vector FILE --row 3` asks. With the
model's calibration, or that of `--calibration RUN`, `query` says how likely its first answer is
right, and whether it is declined: also where the model does not know such a question.
"""

import json
from pathlib import Path

import numpy as np

import zoo
from zoo import evaluation
from zoo.cli import run
from zoo.confidence import Confidence, GalleryIdentity
from zoo.data.files import SUFFIXES
from zoo.embeddings import log_uncertainty
from zoo.errors import InputError
from zoo.evaluation.known import coordinates, query_facts
from zoo.files.atomic import write_text
from zoo.files.run_folder import RunFolder
from zoo.search import encode, flags, stored, vectors
from zoo.search.index import Index
from zoo.search.kinds import TRAINING_ROWS
from zoo.search.tuning import tune

SETUP, CALIBRATION = "search.json", "calibration.json"
_TUNING_QUERIES = 256


def main(argv=None):
    options = flags.parser(__doc__).parse_args(argv)
    (build if options.command == "build" else query)(options)


def build(options):
    """Encodes, then builds the index."""
    calibration = _calibration(options)
    model = zoo.from_preset(options.model)
    identity = {"model": str(options.model), "captions": options.captions}
    side, batch_size = ("captions" if options.captions else "images"), options.batch_size
    if stored.reads_vectors(model, side):
        names, items, encoder, of_file = stored.vector_items(
            model, side, str(options.source), options.names
        )
        identity, batch_size = {**identity, **of_file}, options.shard_size
    elif options.names is not None:
        raise InputError("--names is of the items of a file of vectors, and this model reads none")
    elif options.captions:
        names = items = encode.list_captions(options.source, options.column or "caption")
        encoder = model.encode_captions
    else:
        names, paths = encode.list_images(options.source, options.column or "image")
        _report(encode.left_out(options.source))
        names, items = encode.without_bad(names, paths, options.skip_bad)
        encoder = encode.image_encoder(model, **evaluation.resizing_of(options.model))
    folder = options.out / "embeddings"
    shards = encode.encode_shards(items, encoder, folder, identity, options.shard_size, batch_size)
    similarity = zoo.similarities.get(options.similarity, model) if options.similarity else None
    index = _index(shards, similarity or model.similarity, options, len(items))
    if calibration is not None and index.has_moments:
        _ = index.moments  # so that they are saved with it
    index.save(options.out / "index")
    if calibration is None:
        (options.out / CALIBRATION).unlink(missing_ok=True)  # of an earlier build
    else:
        calibration.save(options.out / CALIBRATION)
        identity["other_gallery"] = _other_gallery(calibration, shards, len(items))
    write_text(options.out / encode.ITEMS, json.dumps(names) + "\n")
    write_text(options.out / SETUP, json.dumps(identity, indent=2) + "\n")
    effort = f", effort {index.effort}" if index.effort else ""
    print(f"{options.out}: {len(index):,} items, {options.kind}{effort}")


def query(options):
    """Encodes one query and prints what the index finds."""
    if [options.text, options.image, options.vector].count(None) != 2:
        raise InputError("query: expected one of a text, --image FILE and --vector FILE")
    if options.text is not None and _is_picture(options.text):
        raise InputError(
            f"query: {options.text!r} is an image file, not a caption; search with "
            f"--image {options.text}"
        )
    setup = _read_json(options.folder / SETUP)
    names = _read_json(options.folder / encode.ITEMS)
    index = Index.load(options.folder / "index")
    model = zoo.from_preset(options.model or setup["model"])
    asks = "images" if setup["captions"] else "captions"
    if options.vector is not None:
        embedding = stored.vector_query(model, asks, options.vector, options.row)
    elif stored.reads_vectors(model, asks):
        raise InputError(
            f"query: the model reads vectors of {asks}; search with --vector FILE --row NUMBER"
        )
    elif options.image is not None:
        _, (path,) = encode.without_bad([options.image], [Path(options.image)], skip_bad=False)
        resizing = evaluation.resizing_of(options.model or setup["model"])
        embedding = encode.image_encoder(model, **resizing)([path])
    else:
        embedding = model.encode_captions([options.text])
    if options.max_uncertainty is None and (options.folder / CALIBRATION).is_file():
        confidence = Confidence.load(options.folder / CALIBRATION)
        texts = None if options.text is None else [options.text]
        for line in _confidence(confidence, index, model, embedding, texts, setup):
            print(line)
    k = min(options.k, len(index))
    try:
        scores, ids = index.search(embedding, k, max_uncertainty=options.max_uncertainty)
    except ValueError as error:
        raise InputError(f"{options.folder}: {error}") from error
    for rank, (score, item) in enumerate(zip(scores[0], ids[0], strict=True), start=1):
        if item >= 0:
            print(f"{rank:4d} {score:12.5g}  {names[item]}")


def _calibration(options):
    """The `Confidence` that `--calibration` names, else that of the model, or None."""
    direction = "i2t" if options.captions else "t2i"
    if options.calibration is None:
        if options.similarity is not None:  # its scores are others
            return None
        return evaluation.calibrations_of(options.model).get(direction)
    if options.similarity is not None:
        raise InputError(
            "--calibration is of the scores of the model's own similarity: leave out --similarity"
        )
    path = RunFolder.existing(options.calibration).calibration_path(direction)
    if not path.is_file():
        raise InputError(
            f"{path}: no such calibration; the run's metrics.json says under 'confidence' why not"
        )
    return Confidence.load(path)


def _other_gallery(confidence, shards, count):
    """How this gallery differs from that of a calibration, in words, or None."""
    made_on = confidence.gallery
    if made_on is None:
        return None
    if made_on.size != count:
        return f"calibrated on a gallery of {made_on.size:,} items, not {count:,}"
    parts = [coordinates(encode.read_shard(shard)) for shard in shards]
    difference = made_on.difference(GalleryIdentity.of(np.concatenate(parts)))
    return None if difference is None else f"calibrated on another gallery: {difference}"


def _confidence(confidence, index, model, embedding, texts, setup):
    """Lines on how sure the answer to one query is."""
    measure, unknown = model.uncertainty_measure, None
    try:
        uncertainty = None
        if "uncertainty" in confidence.names:
            uncertainty = np.asarray(log_uncertainty(embedding, measure), float)
        (probability,) = index.probability(embedding, confidence, uncertainty)
        if confidence.known is not None:
            facts = query_facts(model, vectors.as_arrays(embedding), texts)
            (unknown,) = confidence.known.reasons(**facts)
    except ValueError as error:
        yield f"no probability: {error}"
        return
    what = "the first answer is" if confidence.k == 1 else f"one of the first {confidence.k} is"
    other = setup.get("other_gallery")
    yield f"probability {probability:.2f} that {what} right" + (
        f", an estimate: {other}" if other else ""
    )
    if unknown is not None:
        yield f"declined: the model does not know such a question: {unknown}"
        return
    certificate = confidence.certificate
    reason = None if certificate is None else certificate.reason(probability)
    if reason is not None:
        yield f"{'nothing promised' if certificate.threshold is None else 'declined'}: {reason}"


def _report(others):
    """Says which files of a folder are not indexed: their suffix is of no format that is read."""
    if others:
        kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in others.items())
        print(f"left out {sum(others.values()):,} files of other kinds: {kinds}")


def _is_picture(text):
    """Whether a query is a file, or the name of one, and no caption."""
    name = text.strip()
    is_name = Path(name).suffix.lower() in SUFFIXES and len(name.split()) == 1
    return is_name or (len(name) < 256 and Path(name).is_file())


def _index(shards, similarity, options, total):
    first = encode.read_shard(shards[0])
    training = None
    if options.kind == "ivfpq" and len(shards) > 1:
        each = max(1, TRAINING_ROWS // len(shards))
        parts = [
            {k: v[:: max(1, len(v) // each)] for k, v in encode.read_shard(s).items()}
            for s in shards
        ]
        training = zoo.embeddings.concatenate(parts)
    side = "captions" if options.captions else "images"
    try:
        index = Index.build(
            first,
            similarity,
            kind=options.kind,
            side=side,
            candidates=options.candidates,
            training=training,
            options={"total": total},
        )
        for shard in shards[1:]:
            index.add(encode.read_shard(shard))
    except (ValueError, TypeError) as error:
        raise InputError(f"{options.source}: {error}") from error
    if options.kind == "hnsw":
        # Gallery items stand in for the queries, which are not known yet.
        sample = {key: value[:_TUNING_QUERIES] for key, value in first.items()}
        tune(index, sample, k=min(10, len(index)))
    return index


def _read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected what `build` wrote") from error
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON: {error}") from error


if __name__ == "__main__":
    run(main)
