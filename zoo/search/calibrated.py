"""What a calibration says of a gallery and of one query, for the command line."""

import numpy as np

from zoo import evaluation
from zoo.arrays import as_arrays
from zoo.confidence import Confidence, GalleryIdentity
from zoo.embeddings import log_uncertainty
from zoo.errors import InputError
from zoo.evaluation.known import coordinates, query_facts
from zoo.files.run_folder import RunFolder


def calibration_of(options):
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


def other_gallery(confidence, collection):
    """How this gallery differs from that of a calibration, in words, or None."""
    made_on = confidence.gallery
    if made_on is None:
        return None
    if made_on.size != len(collection):
        return f"calibrated on a gallery of {made_on.size:,} items, not {len(collection):,}"
    parts = [coordinates(shard.arrays) for shard in collection.shards()]
    difference = made_on.difference(GalleryIdentity.of(np.concatenate(parts)))
    return None if difference is None else f"calibrated on another gallery: {difference}"


def lines(confidence, index, model, embedding, texts, setup):
    """Lines on how sure the answer to one query is."""
    measure, unknown = model.uncertainty_measure, None
    try:
        uncertainty = None
        if "uncertainty" in confidence.names:
            uncertainty = np.asarray(log_uncertainty(embedding, measure), float)
        (probability,) = index.probability(embedding, confidence, uncertainty)
        if confidence.known is not None:
            facts = query_facts(model, as_arrays(embedding), texts)
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
