"""The batch over all replicas, which is what contrastive losses compare when training is spread.

Under `tf.distribute` every replica encodes its own rows. Negatives, hardest negatives, pseudo
positives, ranks and kernels are those of the whole batch, so every replica gathers the embeddings
and the ids of all of them and computes the whole loss: any loss stays as it is, and two replicas
reach the weights of one device.
"""

import keras
from keras import ops

from zoo.layers.compat import spans_workers

_HALF = 4096  # float32 counts exactly up to 2²⁴, so that an int32 travels as two halves


def num_replicas():
    """How many replicas compute this step: 1 outside of `tf.distribute` and of its replicas."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    if tf.distribute.get_replica_context() is None:
        return 1
    return tf.distribute.get_strategy().num_replicas_in_sync


def embed(encoder, rows, training=None):
    """The embedding of this replica's rows, of which a small last batch may leave none."""
    # Convolutions on CPUs give no rows a wrong shape (TensorFlow 2.21), so an encoder always gets
    # one, of zeros if there is no other. BatchNorm sees it.
    if num_replicas() == 1 or rows.shape[0]:
        return encoder(rows, training=training)
    count = ops.shape(rows)[0]
    missing = ops.zeros((ops.maximum(1 - count, 0), *rows.shape[1:]), rows.dtype)
    embedding = encoder(ops.concatenate([rows, missing], axis=0), training=training)
    return keras.tree.map_structure(lambda values: values[:count], embedding)


def gather(batch, images, captions):
    """The rows of all replicas in the global batch's order, whatever number each has. No gradient
    travels: every replica knows the whole loss, and so that of its own rows. Pixels stay behind."""
    if num_replicas() == 1:
        return batch, images, captions
    import tensorflow as tf

    batch = {name: ops.convert_to_tensor(v) for name, v in batch.items() if name != "images"}
    rows = keras.tree.flatten((batch, images, captions))
    sizes = [ops.cast(ops.shape(local)[:1], "int32") for local in rows]
    # Workers gather only tensors that lie on a device; vectors of a batch's own are on none yet.
    sent = [tf.identity(_to_float32(local)) for local in (*rows, *sizes)]
    # Sent together: each collective of its own would cost a round.
    received = tf.distribute.get_replica_context().all_gather(sent, axis=0)
    received = [tf.stop_gradient(values) for values in received]
    gathered = [_from_float32(v, local) for v, local in zip(received, (*rows, *sizes), strict=True)]
    gathered = [
        _with_gradient(*of_one)
        for of_one in zip(gathered, rows, gathered[len(rows) :], strict=False)
    ]
    return keras.tree.pack_sequence_as((batch, images, captions), gathered)


def share(loss):
    """What this replica contributes to a loss that every replica computed whole, since optimizers
    sum their gradients; those through the encoders `gather` multiplies again."""
    return loss / num_replicas()


def one_value_a_replica(logs):
    """Logs as vectors of one value, as Keras reduces them over workers along their first axis;
    stock Keras 3.15.1 returns scalars there and fails."""
    if num_replicas() == 1:
        return logs
    import tensorflow as tf

    if not spans_workers(tf.distribute.get_strategy()):
        return logs  # replicas of one process are averaged as they are
    return {name: ops.reshape(value, (1,)) for name, value in logs.items()}


def _to_float32(rows):
    """Rows as float32, integers as two halves in a last axis, so that a sum over replicas is
    exact."""
    if keras.backend.is_int_dtype(rows.dtype):
        rows = ops.stack([rows // _HALF, rows % _HALF], axis=-1)
    return ops.cast(rows, "float32")


def _from_float32(gathered, like):
    """Gathered rows in the type of `like`, the inverse of `_to_float32`."""
    if keras.backend.is_int_dtype(like.dtype):
        halves = ops.cast(gathered, like.dtype)
        gathered = halves[..., 0] * _HALF + halves[..., 1]
    elif like.dtype == "bool":
        gathered = ops.cast(gathered, "bool")
    gathered.set_shape([None, *like.shape[1:]])
    return gathered


def _with_gradient(gathered, local, sizes):
    """`whole`, whose gradient is that of `own` in its place, times the number of replicas."""
    if not keras.backend.is_float_dtype(local.dtype):
        return gathered
    import tensorflow as tf

    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    start = tf.cumsum(sizes, exclusive=True)[replica]

    @tf.custom_gradient
    def place(local):
        def gradient(upstream):
            begin = tf.concat([[start], tf.zeros(upstream.shape.rank - 1, "int32")], axis=0)
            mine = tf.slice(upstream, begin, tf.shape(local))
            return tf.cast(num_replicas() * mine, local.dtype)

        return tf.identity(gathered), gradient

    return place(local)
