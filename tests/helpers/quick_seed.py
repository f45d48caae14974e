"""TensorFlow's global seed, set only where something has been drawn by it.

`tf.random.set_seed` throws away the kernels of all operations that have run eagerly, since some
keep a state. To make them again costs a test a tenth of its time, and the zoo draws by seeds that
it gives to each operation.
"""

import functools

import tensorflow as tf
from tensorflow.python.eager import context


def once(patch):
    """Replaces `tf.random.set_seed`, until `patch`, a `MonkeyPatch`, is undone."""
    set_seed, last = tf.random.set_seed, None

    @functools.wraps(set_seed)
    def set_seed_where_drawn(seed):
        nonlocal last
        if last != (seed, _state()):
            set_seed(seed)
            last = seed, _state()

    patch.setattr(tf.random, "set_seed", set_seed_where_drawn)


def _state():
    """Of the generator from which operations without a seed of their own take one."""
    generator = getattr(context.context(), "_rng", None)  # made with the first seed
    return generator and generator.getstate()
