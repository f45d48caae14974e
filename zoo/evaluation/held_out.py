"""Probes of a run: held-out pairs of its validation split, with what training has seen."""

from pathlib import Path

import numpy as np

from zoo.confidence import Probes
from zoo.confidence.confidence import LEAST
from zoo.confidence.probes import MOST, contents_hash
from zoo.data.records.sources import Split
from zoo.evaluation import known
from zoo.evaluation.retrieval import EncodedSplit
from zoo.models import DualEncoder

WHOLE = 0.6  # of the captions, those of images of which all are kept
HASHED = 20_000  # pictures of training whose contents are remembered, at most


def make_probes(
    model: DualEncoder,
    held_out: EncodedSplit,
    train: Split | None = None,
    seed: int = 0,
    images: int = 1000,
    captions: int = MOST,
    whole: DualEncoder | None = None,
) -> Probes:
    """The `zoo.confidence.Probes` of a model.

    Args:
        model: the `DualEncoder`.
        held_out: an `EncodedSplit` that training has not seen.
        train: the `Split` of training, for what is known; None leaves that out.
        seed: of what is drawn.
        images, captions: how many at most. Captions are drawn of the chosen images first, so that
            both of a pair are there. Where an image is its own label, three fifths of the captions
            are those of whole images, see `Probes.whole`.
        whole: the model with its frozen backbones, where `model` reads stored vectors.

    Raises:
        ValueError: if nothing matches, or embeddings are token sequences, which no index holds.
    """
    if "tokens" in held_out.images or "tokens" in held_out.captions:
        raise ValueError("embeddings are token sequences; probes are vectors, as an index holds")
    records, rng = held_out.records, np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(records.num_images)[:images])
    own = np.isin(records.caption_image, chosen)
    order = rng.permutation(records.num_captions)
    order = np.concatenate([order[own[order]], order[~own[order]]])
    complete = None
    if len(np.unique(records.image_labels)) == records.num_images:
        complete = whole_images(records.caption_image, chosen, WHOLE * captions, rng)
    if complete is not None:
        first = np.isin(records.caption_image[order], complete)
        order = np.concatenate([order[first], order[~first]])
    told = np.sort(order[:captions])
    row = np.full(records.num_images, -1)
    row[chosen] = np.arange(len(chosen))
    seen = {} if train is None else known.known_queries(model, train, held_out, seed, whole)
    return Probes.of(
        {name: np.asarray(values)[chosen] for name, values in held_out.images.items()},
        {name: np.asarray(values)[told] for name, values in held_out.captions.items()},
        records.image_labels[chosen],
        records.caption_labels[told],
        row[records.caption_image[told]],
        measure=held_out.measure_name,
        known=seen,
        trained_on=_hashes(train, rng),
        source=f"{records.name}: {len(chosen):,} images, {len(told):,} captions",
        whole=None if complete is None else np.isin(chosen, complete),
    )


def whole_images(caption_image, images, captions, rng):
    """Some of the images, whose captions are no more than so many together; None if hardly any."""
    counts = np.bincount(caption_image, minlength=int(images.max()) + 1)
    drawn = rng.permutation(images[counts[images] > 0])
    drawn = drawn[np.cumsum(counts[drawn]) <= captions]
    return drawn if len(drawn) >= LEAST else None


def _hashes(train, rng):
    """Hashes of the pictures of training that are files, sorted."""
    if train is None:
        return np.empty(0, np.uint64)
    paths = rng.permutation(np.asarray(train.records.image_paths, object))[:HASHED]
    found = {contents_hash(path) for path in paths if Path(str(path)).is_file()}
    return np.sort(np.array(list(found), np.uint64))
