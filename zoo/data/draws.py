"""Random numbers that are a pure function of (seed, step, purpose)."""

import tensorflow as tf


def step_seed(seed, step):
    """The seed of one step of a pipeline, for the functions of `images`, `captions` and here."""
    return tf.stack([tf.cast(seed, tf.int64), tf.cast(step, tf.int64)])


def uniform(seed, purpose, rows, columns, shard=(0, 1)):
    """Numbers in [0, 1) for each row of a batch.

    Args:
        seed: int64 `(2,)`.
        purpose: an integer that keeps the draws of different uses apart.
        rows: number of rows wanted, those of this shard.
        columns: numbers a row.
        shard: `(index, count)`: the rows are the `index`-th of `count` equal pieces of a larger
            batch, so that workers together draw what a single one would.

    Returns:
        float32 `(rows, columns)`.
    """
    index, count = shard
    # The generator is named: the default depends on the device.
    seed = tf.random.fold_in(seed, purpose, alg="philox")
    numbers = tf.random.stateless_uniform((rows * count, columns), seed, alg="philox")
    return numbers[index * rows : (index + 1) * rows]
