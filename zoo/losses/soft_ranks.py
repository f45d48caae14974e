"""Differentiable ranks, in memory for one matrix however many pairs of items there are."""

from keras import ops


def soft_ranks(scores, temperature, weights=None):
    """R_i = 1 + Σ_{j≠i} w_j sigmoid((u_j − u_i)/τ): the rank with its step made smooth.

    Args:
        scores: `(queries, items)`, higher is better, float32.
        temperature: τ, in units of the scores. As τ → 0 the ranks become 1 + the number of better
            items + half the number of equal ones.
        weights: `(queries, items)`, how much each item counts, or None for 1. A constant for the
            gradient, as labels are.

    Returns:
        float32 `(queries, items)` ranks, the best first, between 1 and the number of items.

    The M² pairs of every query are visited once each way and never stored: pair (i, j) and (j, i)
    share one sigmoid, and the gradient computes them again. All work is on `(items, queries)`
    matrices, M/2 times.

    Reference: Smooth-AP (Brown et al., ECCV 2020) equation 5; DAA (NeurIPS 2022) equation 7.
    """
    # Items first: a roll along them then moves whole rows.
    scaled = ops.transpose(scores) / temperature
    weights = ops.ones_like(scaled) if weights is None else ops.transpose(weights)
    return ops.transpose(1.0 + _better_items(scaled, ops.stop_gradient(weights)))


@ops.custom_gradient
def _better_items(scores, weights):
    """Σ_{j≠i} w_j sigmoid(u_j − u_i), all `(items, queries)`."""

    def contributions(first, second):
        better = ops.sigmoid(second[0] - first[0])
        return second[1] * better, first[1] * (1.0 - better)

    def gradient(*args, upstream=None):
        if upstream is None:
            (upstream,) = args

        # u_j raises the rank of i by w_j, and u_i that of j by w_i: opposite slopes of one pair.
        def slopes(first, second):
            better = ops.sigmoid(second[0] - first[0])
            slope = first[2] * second[1] - second[2] * first[1]
            slope = slope * better * (1.0 - better)
            return -slope, slope

        scores_gradient = _sum_over_pairs(slopes, (scores, weights, upstream))
        return scores_gradient, ops.zeros_like(weights)

    return _sum_over_pairs(contributions, (scores, weights)), gradient


def _sum_over_pairs(contributions, values):
    """What every item gathers from its pairs with all others.

    Args:
        contributions: from the values of the first and of the second items of some pairs to what
            the first and what the second receive.
        values: tuple of `(items, queries)` matrices.

    Returns:
        `(items, queries)`.
    """
    items = ops.shape(values[0])[0]
    furthest = items // 2
    # Pairs (i, i + shift), round the end, for shift = furthest … 1. What the second items receive
    # is kept in the row of the first and rolled on by one a step, so it arrives in its own.
    shifted = tuple(ops.roll(value, -furthest, axis=0) for value in values)
    to_first, to_second = contributions(values, shifted)
    # An even number of items meets its opposite from both sides, a single one meets itself.
    share = ops.where(items % 2 == 0, 0.5, 1.0) * ops.where(items > 1, 1.0, 0.0)
    share = ops.cast(share, to_first.dtype)

    def step(_, state):
        shifted, to_first, to_second = state
        shifted = tuple(ops.roll(value, 1, axis=0) for value in shifted)
        first, second = contributions(values, shifted)
        return shifted, to_first + first, ops.roll(to_second, 1, axis=0) + second

    state = (shifted, share * to_first, share * to_second)
    _, to_first, to_second = ops.fori_loop(1, furthest, step, state)
    return to_first + ops.roll(to_second, 1, axis=0)
