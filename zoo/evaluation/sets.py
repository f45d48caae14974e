"""Measures of set embeddings: spread, attention, usage and retrieval of single elements."""

import math
from typing import Any

import numpy as np

from zoo import encoders, metrics
from zoo.data import batches
from zoo.data.records import Records
from zoo.embeddings import uncertainty
from zoo.models import DualEncoder

SIDES = ("images", "captions")


def encode_sets(
    model: DualEncoder, records: Records, source: Any
) -> dict[str, dict[str, np.ndarray]]:
    """The sets of a split, by a `DualEncoder` of `dive` or `pvse`: `{"images", "captions"}`, each a
    dict of arrays, see `zoo.encoders.with_attention`."""
    pictures = batches.image_batches(records, source).map(lambda b: b["images"])
    words = batches.caption_batches(records, model.tokenizer)
    towers = [encoders.with_attention(t) for t in (model.image_encoder, model.caption_encoder)]
    inputs = (pictures, words.map(lambda b: b["captions"]))
    return {
        side: tower.predict(shown, verbose=0)
        for side, tower, shown in zip(SIDES, towers, inputs, strict=True)
    } | {"labels": (records.image_labels, records.caption_labels)}


def measure_sets(sets: dict[str, dict[str, np.ndarray]], similarity: Any) -> dict[str, Any]:
    """Measures of the sets of `encode_sets`, by a similarity of sets.

    Returns:
        A dict with, for `"images"` and for `"captions"`:

        - `log_circular_variance`: natural logarithm of the mean of 1 − ‖mean of the elements‖.
        - `attention_divergence`: in [0, 1], see `attention_divergence`.
        - `usage`: the share of matching pairs in which each element is the nearest to the other
          side's set, and `usage_entropy`: its entropy over log K, 1 if all are used alike.
        - `element_rsum`: RSUM with this element alone against the other side's whole sets, and
          `others_rsum`: RSUM with all elements but this one.

        What needs two elements is None for sets of one.

    Reference: DivE (Kim et al., CVPR 2023), table 3 for the variance, table 5 for both RSUMs.
    """
    labels = sets["labels"]
    relevance = metrics.LabelRelevance(*labels)
    results = {}
    for side, other in (SIDES, SIDES[::-1]):
        elements, rest = sets[side]["elements"], sets[other]["elements"]
        count = elements.shape[1]
        several = count > 1
        usage = element_usage(elements, rest, *(labels if side == "images" else labels[::-1]))
        alone, others = [], []
        for k in range(count) if several else ():
            for subset, rsums in ((elements[:, [k]], alone), (np.delete(elements, k, 1), others)):
                pair = {other: {"elements": rest}, side: {"elements": subset}}
                matrix = metrics.PairwiseSimilarity(pair["images"], pair["captions"], similarity)
                rsums.append(metrics.evaluate_retrieval(matrix.in_memory(), relevance)["rsum"])
        variance = float(np.mean(uncertainty({"elements": elements})))
        attention, mask = sets[side]["attention"], sets[side].get("mask")
        results[side] = {
            # Rounding leaves 1e-8 of a set whose elements coincide.
            "log_circular_variance": math.log(max(variance, 1e-8)) if several else None,
            "attention_divergence": attention_divergence(attention, mask) if several else None,
            "usage": usage,
            "usage_entropy": _entropy(usage) / math.log(count) if several else None,
            "element_rsum": alone,
            "others_rsum": others,
        }
    return results


def attention_divergence(attention, mask=None):
    """Jensen–Shannon divergence of the attention of an item's elements, over log K, in [0, 1]."""
    attention = np.asarray(attention, np.float64)
    count = attention.shape[1]
    if mask is not None:
        attention = attention[np.sum(mask, axis=1) >= count]
    if not len(attention):
        return float("nan")
    mixed = _entropy(attention.mean(axis=1))
    divergence = mixed - _entropy(attention).mean(axis=1)
    return float(np.mean(divergence) / math.log(count))


def element_usage(elements, others, labels, other_labels):
    """The share of matches to which each element of sets `(items, K, dim)` is the nearest of its
    set, K shares; equal labels match."""
    won = np.zeros(elements.shape[1])
    for label in np.unique(labels):
        images, match = elements[labels == label], others[other_labels == label]
        best = np.einsum("nkd,mld->nmkl", images, match).max(axis=3).argmax(axis=2)
        won += np.bincount(best.ravel(), minlength=len(won))
    return (won / won.sum()).tolist()


def nearest_captions(elements: np.ndarray, captions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The caption with the nearest element to each element of some images, `(indices, cosines)`,
    each `(images, K)`, of unit elements `(images, K, dim)` and `(captions, L, dim)`."""
    count, per, dim = captions.shape
    cosines = elements @ captions.reshape(-1, dim).T
    best = cosines.reshape(*elements.shape[:2], count, per).max(axis=3)
    indices = best.argmax(axis=2)
    return indices, np.take_along_axis(best, indices[..., None], axis=2)[..., 0]


def _entropy(shares):
    """−Σ p log p over the last axis; 0 log 0 is 0."""
    shares = np.asarray(shares, np.float64)
    return -np.sum(shares * np.log(np.maximum(shares, 1e-12)), axis=-1)
