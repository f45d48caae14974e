"""Where to train: one device, all of this host, several hosts, or TPUs; BatchNorm over all."""

import functools
import os

import keras
import tensorflow as tf

from zoo.errors import InputError
from zoo.layers.compat import all_layers, replace_moments

NAMES = ("one", "mirrored", "multi_worker", "tpu")


def strategy(name: str) -> tf.distribute.Strategy:
    """The `tf.distribute.Strategy` of a name, the same object every time: several mirrored ones in
    one process abort it.

    Args:
        name: `"one"`, the default device; `"mirrored"`, all GPUs of this host, or without GPUs all
            logical CPUs; `"multi_worker"`, the hosts of the variable TF_CONFIG, to be asked for
            before anything is computed; `"tpu"`, that of the variable TPU_NAME, or the local one.

    Raises:
        InputError: if there are no such devices.
        ValueError: if the name is unknown.
    """
    if name not in NAMES:
        raise ValueError(f"`name` must be one of {NAMES}; received {name!r}")
    return tf.distribute.get_strategy() if name == "one" else _started(name)


def is_chief(strategy):
    """Whether this process writes the run folder: the chief or, without one, worker 0."""
    resolver = getattr(strategy, "cluster_resolver", None)
    if resolver is None or not resolver.cluster_spec() or resolver.task_type is None:
        return True
    kind, number = resolver.task_type, resolver.task_id
    has_chief = "chief" in resolver.cluster_spec().jobs
    return kind == "chief" or (not has_chief and number == 0)


def synchronize_batch_normalization(model: keras.Model) -> None:
    """Makes the BatchNorm layers of a model take their statistics over all replicas, as on one
    device. Keras' own `synchronized=True` must be given when a layer is made, which pretrained
    networks do not, and passes over inputs with a mask (3.15.1)."""
    for layer in all_layers(model):
        if isinstance(layer, keras.layers.BatchNormalization):
            replace_moments(layer, _moments)


@functools.cache
def _started(name):
    return {"mirrored": _mirrored, "multi_worker": _multi_worker, "tpu": _tpu}[name]()


def _mirrored():
    devices = [device.name for device in tf.config.list_logical_devices("GPU")]
    if devices:
        return tf.distribute.MirroredStrategy(devices)
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    # The default for CPUs starts collectives, which abort when a process makes several.
    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


def _multi_worker():
    if not os.environ.get("TF_CONFIG"):
        raise InputError(
            "--strategy multi_worker needs the variable TF_CONFIG, which names the hosts and this "
            "one among them; see docs/training.md"
        )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:  # something was computed before
        raise InputError(f"--strategy multi_worker must come first: {error}") from error
    except ValueError as error:
        raise InputError(f"TF_CONFIG: {error}") from error


def _tpu():
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(os.environ.get("TPU_NAME", ""))
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"--strategy tpu found no TPU: {error} (a TPU VM needs the packages tensorflow-tpu, in "
            "place of tensorflow, and libtpu; see docs/training.md)"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _moments(axes, inputs, mask):
    """Mean and variance over all replicas, of unmasked positions."""
    context = tf.distribute.get_replica_context()

    def over_all(*values):
        sums = [tf.reduce_sum(value, axes, keepdims=True) for value in values]
        return sums if context is None else context.all_reduce(tf.distribute.ReduceOp.SUM, sums)

    kept = tf.ones_like(inputs)
    if mask is not None:
        kept = kept * tf.cast(mask[..., None], inputs.dtype)
    total, count = over_all(kept * inputs, kept)
    mean = tf.math.divide_no_nan(total, count)
    (squares,) = over_all(kept * tf.square(inputs - mean))
    variance = tf.math.divide_no_nan(squares, count)
    return tf.squeeze(mean, axes), tf.squeeze(variance, axes)
