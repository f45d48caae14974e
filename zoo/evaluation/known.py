"""What a model has seen in training, so that a question that it does not know is declined."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from zoo.arrays import centres
from zoo.confidence import KnownQueries
from zoo.confidence.unknown import LEAST
from zoo.data.captions import token_ids, unknown_words
from zoo.data.split import Split
from zoo.embeddings import Embedding
from zoo.evaluation.retrieval import EncodedSplit, embed
from zoo.models import DualEncoder

MOST = {"images": 2000, "captions": 5000}  # of training, encoded again
HELD_OUT = 2000  # queries of the validation split


def known_queries(
    model: DualEncoder, train: Split, held_out: EncodedSplit, seed: int = 0
) -> dict[str, KnownQueries]:
    """What is usual of queries, images and captions.

    Args:
        model: a `DualEncoder`.
        train: the `zoo.data.Split` that it was trained on.
        held_out: an `EncodedSplit` of images and captions that training has not seen.
        seed: of what is drawn.

    Returns:
        A dict from `"i2t"` and `"t2i"` to `zoo.confidence.KnownQueries`; a direction with fewer
        than 99 held-out queries is left out.
    """
    rng = np.random.default_rng(seed)
    images = _some(rng, train.records.num_images, MOST["images"])
    captions = _some(rng, train.records.num_captions, MOST["captions"])
    size = min(64, len(images))  # every batch is whole: sources take no others
    indices = tf.data.Dataset.from_tensor_slices(images).batch(size, drop_remainder=True)
    shown = train.source.take(indices)
    if train.records.caption_vectors is not None:
        read = tf.cast(train.records.caption_vectors.gather(captions), tf.float32)
    else:
        read = token_ids(model.tokenizer, [train.records.captions[i] for i in captions])
    seen = {
        "i2t": embed(model.image_encoder, shown.map(lambda batch: tf.cast(batch, tf.float32))),
        "t2i": embed(model.caption_encoder, tf.data.Dataset.from_tensor_slices(read).batch(256)),
    }
    found = {}
    for direction, embeddings in seen.items():
        means = coordinates(held_out.images if direction == "i2t" else held_out.captions)
        chosen = _some(rng, len(means), HELD_OUT)
        if len(chosen) >= LEAST:
            seen_means = coordinates(embeddings)
            found[direction] = KnownQueries.fit(seen_means, means[chosen], seed=seed)
    return found


def facts_of_split(model: DualEncoder, encoded: EncodedSplit, direction: str) -> dict[str, Any]:
    """What `KnownQueries` asks of the queries of a split.

    Args:
        model: whose tokenizer counts words.
        encoded: an `EncodedSplit`.
        direction: `"i2t"` or `"t2i"`.
    """
    if direction == "i2t":
        return query_facts(model, encoded.images)
    return query_facts(model, encoded.captions, encoded.records.captions)


def query_facts(
    model: DualEncoder, embeddings: Embedding, texts: Sequence[str] | None = None
) -> dict[str, Any]:
    """What `KnownQueries` asks of queries: `known.declined(**query_facts(model, asked, texts))`.

    Args:
        model: whose tokenizer counts words; one of vectors has none, and no words are counted.
        embeddings: of the queries, a dict of arrays.
        texts: the captions themselves, or None for images.

    Returns:
        A dict of `means` and, of captions, `words` and `unknown`, see
        `zoo.data.captions.unknown_words`.
    """
    facts = {"means": coordinates(embeddings)}
    if texts is not None and model.tokenizer is not None:
        facts["words"], facts["unknown"] = unknown_words(model.tokenizer, texts)
    return facts


def coordinates(embeddings: Embedding) -> np.ndarray:
    """Vectors in which strange embeddings lie apart, `(B, dim')`: of Gaussians mean and log
    variance, of others what `centres` says."""
    if "log_variance" not in embeddings:
        return centres(embeddings)
    parts = [np.asarray(embeddings[name]) for name in ("mean", "log_variance")]
    return np.concatenate([parts[0], np.broadcast_to(parts[1], parts[0].shape)], axis=1)


def _some(rng, count, most):
    return np.sort(rng.choice(count, most, replace=False)) if count > most else np.arange(count)
