"""Random numbers that are a pure function of (seed, step, purpose)."""

import tensorflow as tf

_EPOCH = 23


def step_seed(seed, step):
    """The seed of one step of a pipeline, for the functions of `images`, `captions` and here."""
    return tf.stack([tf.cast(seed, tf.int64), tf.cast(step, tf.int64)])


def uniform(seed, purpose, rows, columns, shard=(0, 1)):
    """Numbers in [0, 1) for each row of a batch, float32 `(rows, columns)`. `purpose` keeps uses
    apart; `shard`s together draw what one process would."""
    index, count = shard
    # The generator is named: the default depends on the device.
    seed = tf.random.fold_in(seed, purpose, alg="philox")
    numbers = tf.random.stateless_uniform((rows * count, columns), seed, alg="philox")
    return numbers[index * rows : (index + 1) * rows]


def epoch_order(seed, step, batch_size, total):
    """Members of a step's batch, int64 `(batch_size,)`: every epoch takes each of `total` once, in
    any order, but for those that fill no batch."""
    per_epoch = total // batch_size
    epoch, position = step // per_epoch, step % per_epoch
    key = tf.random.fold_in(step_seed(seed, epoch), _EPOCH, alg="philox")
    places = position * batch_size + tf.range(batch_size, dtype=tf.int64)
    # A permutation that is computed where it is needed, not stored.
    return tf.random.experimental.index_shuffle(places, key, tf.cast(total - 1, tf.int64))
