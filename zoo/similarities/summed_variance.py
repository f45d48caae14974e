"""Sums over (μ − μ')² / (σ² + σ'²) and log(σ² + σ'²), streamed in blocks of pairs.

1 / (σ² + σ'²) has infinite rank as a matrix over pairs, so that no matrix product gives these sums:
every pair costs `dim` divisions and logarithms. What can be bounded is the memory. Small blocks
stay in cache without XLA, and are one fused loop with it. In a graph without XLA TensorFlow works
on up to ten iterations of each of the two loops at once, so that a hundred blocks may be alive.
"""

import math

import keras
from keras import ops

BLOCK = 2**17  # numbers (pairs × dim) in one block, half a MiB


class SummedVarianceTerms(keras.Operation):
    """quadratic · Σ_d (μ − μ')² / (σ² + σ'²) + log · Σ_d log(σ² + σ'²) of every pair, `(N, M)` of
    means and log variances `(N, dim)` and `(M, dim)`.

    Memory beyond inputs and output is a few blocks of so many numbers (pairs × dim), forwards and
    backwards: the gradient is written out and recomputes the blocks.
    """

    def __init__(self, quadratic, log, block=BLOCK, **kwargs):
        super().__init__(**kwargs)
        self.quadratic, self.log, self.block = quadratic, log, block

    def compute_output_spec(self, image_mean, image_log, caption_mean, caption_log):
        return keras.KerasTensor((image_mean.shape[0], caption_mean.shape[0]), "float32")

    def call(self, image_mean, image_log, caption_mean, caption_log):
        return self._streamed(image_mean, image_log, caption_mean, caption_log)

    def _streamed(self, *tensors):
        """The values and their hand-written gradient, a block of pairs at a time, so that no
        (images, captions, dim) array exists."""
        side = max(1, math.isqrt(self.block // tensors[0].shape[-1]))

        @ops.custom_gradient
        def streamed(image_mean, image_log, caption_mean, caption_log):
            rows = _Blocks(image_mean, image_log, side)
            columns = _Blocks(caption_mean, caption_log, side)

            def grad(*args, upstream=None):
                upstream = args[0] if upstream is None else upstream
                return (
                    *self._gradient(rows, columns, upstream),
                    *self._gradient(columns, rows, ops.transpose(upstream)),
                )

            return self._values(rows, columns), grad

        return streamed(*tensors)

    def _values(self, rows, columns):
        """(images, captions), computed in stripes of rows; the padding of the last blocks is cut
        off."""

        def stripe(row):
            block = rows.take(row)
            values = ops.map(lambda column: self._block(block, columns.take(column)), columns.index)
            values = ops.reshape(ops.transpose(values, (1, 0, 2)), (rows.side, -1))
            return values[:, : columns.size]

        values = ops.map(stripe, rows.index)
        return ops.reshape(values, (-1, columns.size))[: rows.size]

    def _gradient(self, rows, columns, upstream):
        """Gradient for the mean and log variance of the rows, `(rows, dim)` each."""

        def stripe(row):
            block, weight = rows.take(row), rows.part(upstream, row, axis=0)

            def column(column):
                part = columns.part(weight, column, axis=1)
                part = ops.where(columns.valid(column), part, 0.0)
                return self._block_gradient(block, columns.take(column), part)

            by_mean, by_log = ops.map(column, columns.index)
            return ops.sum(by_mean, axis=0), ops.sum(by_log, axis=0)

        by_mean, by_log = ops.map(stripe, rows.index)
        return rows.join(by_mean), rows.join(by_log)

    def _block(self, row, column):
        """The terms of one block, (rows, columns), summed over dimensions."""
        difference, total = _broadcast(row, column)
        terms = self.quadratic * difference * difference / total + self.log * ops.log(total)
        return ops.sum(terms, axis=-1)

    def _block_gradient(self, row, column, upstream):
        """One block's part of the gradient by means and log variances of its rows, (rows, dim)
        each."""
        difference, total = _broadcast(row, column)
        upstream = ops.expand_dims(upstream, -1)
        ratio = difference / total
        # The share of σ² in σ² + σ'² is at most one, so that tiny variances do not overflow.
        share = ops.expand_dims(row[1], 1) / total
        by_mean = 2.0 * self.quadratic * upstream * ratio
        by_log = upstream * (self.log - self.quadratic * difference * ratio) * share
        return ops.sum(by_mean, axis=1), ops.sum(by_log, axis=1)


class _Blocks:
    """Blocks of consecutive items; the last one repeats the last item until it is full."""

    def __init__(self, mean, log, side):
        self.mean, self.log = mean, log
        self.size = mean.shape[0]
        if self.size is None:
            self.size = ops.shape(mean)[0]
        else:
            side = max(1, min(side, self.size))
        self.side = side
        self.index = ops.arange((self.size + side - 1) // side)

    def _positions(self, block):
        """The positions of a block, `(side,)`; those of the last may lie past the end."""
        return block * self.side + ops.arange(self.side)

    def valid(self, block):
        """bool `(side,)`: which positions of a block lie before the end."""
        return self._positions(block) < self.size

    def part(self, x, block, axis):
        """The rows of a block along an axis; past the end the last row is repeated."""
        return ops.take(x, ops.minimum(self._positions(block), self.size - 1), axis=axis)

    def take(self, block):
        """Mean and variance of a block, `(side, dim)` each."""
        return self.part(self.mean, block, 0), ops.exp(self.part(self.log, block, 0))

    def join(self, blocks):
        """`(blocks, side, dim)` to `(size, dim)`."""
        return ops.reshape(blocks, (-1, self.mean.shape[-1]))[: self.size]


def _broadcast(row, column):
    """Differences of means and sums of variances of all pairs of a block, (rows, columns, dim)
    each."""
    difference = ops.expand_dims(row[0], 1) - ops.expand_dims(column[0], 0)
    return difference, ops.expand_dims(row[1], 1) + ops.expand_dims(column[1], 0)
