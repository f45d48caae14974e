"""Metrics of DAA's figures: ASP among the nearest items, and pairs above a semantic score."""

import numpy as np

from zoo.metrics.blocks import as_similarity, row_blocks
from zoo.metrics.semantic_precision import agreement, checked, row_pairs


def semantic_precision_at(similarity, semantic, depths):
    """ASP among the N items of each query that are semantically nearest, for several N."""
    if not len(depths) or min(depths) < 1:
        raise ValueError(f"`depths` must be whole numbers of 1 and above; received {depths}")
    similarity, semantic = checked(similarity, semantic)
    return {
        "i2t": _one_direction(similarity, semantic, depths),
        "t2i": _one_direction(similarity.transposed(), semantic.transposed(), depths),
    }


def _one_direction(similarity, semantic, depths):
    total = np.zeros(len(depths))
    for scores, truth in row_pairs(similarity, semantic):
        nearest = np.argsort(-truth, kind="stable")
        scores, truth = scores[nearest], truth[nearest]
        total += np.array([agreement(scores[:n], truth[:n]) for n in depths])
    return (total / similarity.shape[0]).tolist()


def pairs_above(semantic, thresholds):
    """How many pairs of an image and a caption have a semantic score above each threshold."""
    thresholds = np.asarray(thresholds, float)
    counts = np.zeros(len(thresholds), int)
    for _, rows in row_blocks(as_similarity(semantic), name="semantic"):
        ordered = np.sort(rows, axis=None)
        counts += ordered.size - np.searchsorted(ordered, thresholds, side="right")
    return counts.tolist()
