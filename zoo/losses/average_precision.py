"""Losses that are a smooth average precision: by matches, and by semantic similarity."""

import functools

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.losses.base import MatrixLoss, mean_over, positive

# Items a block: pairs of blocks are compared at once, in BLOCK matrices' worth of memory.
BLOCK = 8
# The score of padding: below everything, yet finite, so that no difference becomes a NaN.
LAST = -1e30


def soft_ranks(scores: Tensor, temperature: float, weights: Tensor | None = None) -> Tensor:
    """Ranks with a first derivative and no second one, of float32 `(queries, items)` scores:
    R_i = 1 + Σ_{j≠i} w_j sigmoid((u_j − u_i)/τ) (Smooth-AP, equation 5; DAA). The weights are
    constants for the gradient, as labels are."""
    # In O(queries · items) memory: the pairs are visited block by block, the two of a pair share
    # one tanh, since sigmoid(x) = (1 + tanh(x/2))/2 and tanh is odd, and the gradient visits them
    # again instead of keeping them.
    # Items first, so that a block of them is one piece of memory.
    scaled = ops.transpose(scores) / (2.0 * temperature)
    if weights is None:
        items = ops.shape(scaled)[0]
        # Padding ranks below everything, an advantage of −1 each: counted here, it cancels.
        others = ops.cast(items + _missing(items) - 1, "float32")
        advantage = _advantage(scaled)
    else:
        weights = ops.stop_gradient(ops.transpose(weights))
        others = ops.sum(weights, axis=0, keepdims=True) - weights
        advantage = _advantage(scaled, weights)
    return ops.transpose(1.0 + 0.5 * (others + advantage))


@keras.saving.register_keras_serializable(package="halo")
class SmoothAveragePrecision(MatrixLoss):
    """1 − AP, the mean over the queries with a positive, half of each direction (Smooth-AP).

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    zoo.losses.SmoothAveragePrecision(0.1)(np.eye(2), logits)
    ```

    AP of a query is Σ_{i∈P} R(i, P) / R(i, all) / |P|, the rank of each positive among the
    positives over its rank in the gallery, both ranks made smooth, see `soft_ranks`.
    Labels between 0 and 1 weigh: an item counts as that share of a positive. A query without a
    positive contributes nothing.

    Args:
        temperature: τ > 0 (else a ValueError), in units of the logits.
    Relations: as τ → 0 it is one minus the mean average precision over the whole gallery. DAA's
        baseline, in place of `SemanticPrecision`.
    Reference: Smooth-AP (Brown et al., ECCV 2020) equations 4 to 6.
    """

    def __init__(self, temperature: float = 0.01, name: str | None = None):
        super().__init__(name=name)
        self.temperature = positive("temperature", temperature)

    def call(self, matches: Tensor, logits: Tensor) -> Tensor:
        columns = self.of_rows(ops.transpose(matches), ops.transpose(logits))
        return 0.5 * (self.of_rows(matches, logits) + columns)

    def of_rows(self, matches: Tensor, logits: Tensor) -> Tensor:
        """The loss of one direction: the rows of `(N, M)` are the queries."""
        among_positives = soft_ranks(logits, self.temperature, matches)
        among_all = soft_ranks(logits, self.temperature)
        positives = ops.sum(matches, axis=1)
        precision = ops.sum(matches * among_positives / among_all, axis=1)
        query = 1.0 - ops.divide_no_nan(precision, positives)
        return mean_over(query, ops.cast(ops.greater(positives, 0.0), "float32"))


@keras.saving.register_keras_serializable(package="halo")
class SemanticPrecision(MatrixLoss):
    """1 − ASP, the mean over the queries of both directions, image → text and back (DAA).

    ```python
    logits = np.array([[4.0, 0.0], [1.0, 3.0]], "float32")
    semantic = np.array([[1.0, 0.2], [0.3, 1.0]], "float32")
    zoo.losses.SemanticPrecision(0.1)(semantic, logits)
    ```

    ASP of a query is the mean over the gallery of min(R(i, C), R(i, S)) / max(R(i, C), R(i, S)):
    how well the rank of item i by similarity, R(i, S), agrees with its rank by semantics, R(i, C).
    Both ranks are made smooth, see `soft_ranks`.

    Args:
        temperature: τ > 0 of the ranks (else a ValueError), in units of the logits. The released
            code has 0.01 for the cosines of PCME's samples, 0.001 for SGRAF.
        semantic_temperature: τ of the ranks by semantics, in their units; None for the same, as in
            the paper.
    Call arguments: semantic_similarity `(N, M)`, finite, in any unit, a constant for the gradient,
        such as the mean CIDEr of a caption with an image's, `zoo.metrics.cider`; logits `(N, M)`.
    Output: a float32 scalar in [0, 1), 0 if both rank alike.
    Relations: as τ → 0 it is one minus the mean of both values of
        `zoo.metrics.average_semantic_precision`. With as many images as captions it is equation
        12's mean over all queries.
    Reference: DAA (Li et al., NeurIPS 2022) equations 4 to 12. The paper prints neither the weight
        of the term nor τ.
    Released code differs: it adds the directions, where this is their mean. So a released weight w
        is 2 · w here: SGRAF's 10 (Flickr30K) and 25 (COCO) are 20 and 50, PCME's 1000 is 2000
        beside pairs that count twice as well · a missing transpose ranks the wrong items unless the
        matrix is symmetric · the PCME variant never reads the captions.
    """

    target_name = "semantic_similarity"
    target_is_label = False

    def __init__(
        self,
        temperature: float = 0.01,
        semantic_temperature: float | None = None,
        name: str | None = None,
    ):
        super().__init__(name=name)
        self.temperature = positive("temperature", temperature)
        if semantic_temperature is not None:
            semantic_temperature = positive("semantic_temperature", semantic_temperature)
        self.semantic_temperature = semantic_temperature

    def call(self, semantic_similarity: Tensor, logits: Tensor) -> Tensor:
        rows = self._disagreement(semantic_similarity, logits)
        columns = self._disagreement(ops.transpose(semantic_similarity), ops.transpose(logits))
        return 0.5 * (rows + columns)

    def _disagreement(self, semantics, logits):
        """Mean of 1 − min / max of the ranks by semantics and by similarity, over all pairs; no
        gradient goes to the semantics."""
        temperature = self.semantic_temperature or self.temperature
        by_semantics = soft_ranks(ops.stop_gradient(semantics), temperature)
        by_similarity = soft_ranks(logits, self.temperature)
        agreement = ops.minimum(by_semantics, by_similarity)
        agreement = agreement / ops.maximum(by_semantics, by_similarity)
        return ops.mean(1.0 - agreement)


@ops.custom_gradient
def _advantage(scores, *weights):
    """Σ_{j≠i} w_j tanh(u_j − u_i), all `(items, queries)`; without weights, of padding too."""

    def gradient(*args, upstream=None):
        if upstream is None:
            (upstream,) = args
        scores_gradient = _compiled(_sum_of_slopes)(scores, upstream, *weights)
        return (scores_gradient, ops.zeros_like(weights[0])) if weights else scores_gradient

    return _compiled(_sum_of_advantages)(scores, *weights), gradient


def _sum_of_advantages(scores, *weights):
    """Σ_j w_j tanh(u_j − u_i) of every item i and query: (items, queries) to the same shape."""

    def advantage(first, second):
        odd = ops.tanh(second[0] - first[0])
        return (second[1] * odd, first[1] * odd) if weights else (odd, odd)

    return _sum_over_pairs(advantage, (scores, *weights))


def _sum_of_slopes(scores, upstream, *weights):
    """The gradient of `_sum_of_advantages` by its scores, times `upstream`; hand-written, so that
    the pairs are not kept in memory."""

    def slope(first, second):
        odd = ops.tanh(second[0] - first[0])
        # Along u_i of g_i w_j tanh(u_j − u_i) + g_j w_i tanh(u_i − u_j); along u_j its opposite.
        own_slope, other = first[1], second[1]
        if weights:
            own_slope, other = own_slope * second[2], other * first[2]
        pull = (other - own_slope) * (1.0 - ops.square(odd))
        return pull, pull

    return _sum_over_pairs(slope, (scores, upstream, *weights))


def _compiled(function):
    """A function compiled by XLA, which never writes the differences of a block. It takes a third
    of the time. A step that is compiled as a whole compiles it as a part."""
    if keras.backend.backend() != "tensorflow":
        return function
    compiled = _xla(function)
    # The gradient is written above; XLA could not derive one of its loop.
    return lambda *values: compiled(*map(ops.stop_gradient, values))


@functools.cache
def _xla(function):
    """A function compiled by XLA, once per function."""
    import tensorflow as tf

    return tf.function(function, jit_compile=True, autograph=False)


def _sum_over_pairs(compare, values):
    """What every item receives from its pairs with all others, `(items, queries)`. `compare`
    returns what a block of first items receives and what the second ones lose."""
    items = ops.shape(values[0])[0]
    blocks = tuple(
        _in_blocks(value, LAST if number == 0 else 0.0) for number, value in enumerate(values)
    )
    number_of_blocks = ops.shape(blocks[0])[0]

    def compare_blocks(shifted):
        firsts = tuple(block[:, :, None] for block in blocks)
        seconds = tuple(block[:, None] for block in shifted)
        to_first, from_second = compare(firsts, seconds)
        return ops.sum(to_first, axis=2), ops.sum(from_second, axis=1)

    def shift(arrays, by):
        return tuple(ops.roll(array, by, axis=0) for array in arrays)

    # Every block with itself: all of its pairs, both ways round.
    received, _ = compare_blocks(blocks)
    # Blocks (b, b + distance), round the end, from the furthest to the next. What is taken from
    # the second is kept in the row of the first and rolled on by one a step, so it ends in its own.
    furthest = number_of_blocks // 2
    shifted = shift(blocks, -furthest)
    # An even number of blocks meets its opposite from both sides, a single one only itself.
    share = ops.where(number_of_blocks % 2 == 0, 0.5, ops.minimum(furthest, 1))
    share = ops.cast(share, received.dtype)
    to_first, from_second = compare_blocks(shifted)

    def step(_, state):
        shifted, received, given = state
        shifted = shift(shifted, 1)
        to_first, from_second = compare_blocks(shifted)
        return shifted, received + to_first, ops.roll(given, 1, axis=0) + from_second

    state = (shifted, received + share * to_first, share * from_second)
    _, received, given = ops.fori_loop(1, furthest, step, state)
    received = received - ops.roll(given, 1, axis=0)
    return ops.reshape(received, (-1, ops.shape(values[0])[1]))[:items]


def _in_blocks(matrix, padding):
    """(items, queries) to (blocks, BLOCK, queries); the last block is padded."""
    items, queries = ops.shape(matrix)
    rows = ops.full((_missing(items), queries), padding, matrix.dtype)
    return ops.reshape(ops.concatenate([matrix, rows], axis=0), (-1, BLOCK, queries))


def _missing(items):
    """How many rows fill the last block."""
    return -items % BLOCK
