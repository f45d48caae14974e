"""Softmax over positions of which some are padding."""

from keras import ops


def masked_softmax(scores, mask=None, axis=-1):
    """Softmax that gives masked positions a weight of exactly zero, in float32.

    Args:
        scores: a tensor of any shape.
        mask: True where a position counts, broadcastable to `scores`, or None.
        axis: the axis that sums to one.

    Returns:
        float32 weights of the shape of `scores`. Where every position of a row is masked, all
        its weights are zero (a plain masked softmax would weigh padding uniformly).
    """
    scores = ops.cast(scores, "float32")
    if mask is None:
        return ops.softmax(scores, axis=axis)
    mask = ops.cast(mask, "bool")
    weights = ops.softmax(ops.where(mask, scores, -1e30), axis=axis)
    return ops.where(mask, weights, 0.0)
