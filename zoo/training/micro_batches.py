"""A batch in micro-batches: one for every replica, or for every step of an accumulated gradient."""

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_MATRICES = ("matches", "semantic")  # (images, captions)


def in_micro_batches(
    batches: tf.data.Dataset, count: int, chosen: range | None = None, alone: bool = False
) -> tf.data.Dataset:
    """Cuts every batch into micro-batches, one after the other.

    Micro-batches differ by a row at most. Every component of a batch is cut along its first axis;
    images and captions are each cut evenly, also where an image has several captions.

    Args:
        batches: a `tf.data.Dataset` of dicts of fixed shapes.
        count: micro-batches of a batch.
        chosen: a range of the micro-batches to yield, or None for all.
        alone: whether a loss sees a micro-batch alone, as when gradients are accumulated: `matches`
            and `semantic` `(N, M)` then lose the columns of the others' captions. Replicas see
            each other's captions and need them.

    Returns:
        A `tf.data.Dataset` of `len(chosen)` elements for every batch.
    """
    chosen = range(count) if chosen is None else chosen
    if count == 1:
        return batches

    def cut(batch):
        return tf.data.Dataset.range(chosen.start, chosen.stop).map(
            lambda index: {name: cut_one(name, rows, index) for name, rows in batch.items()}
        )

    def cut_one(name, rows, index):
        own = _part(rows, index, count)
        if not alone or name not in _MATRICES:
            return own
        return tf.transpose(_part(tf.transpose(own), index, count))

    return batches.flat_map(cut).prefetch(tf.data.AUTOTUNE)


def distribute(
    strategy: tf.distribute.Strategy,
    stream: Callable,
    start_step: int = 0,
    micro_batches: int = 1,
) -> Any:
    """The batches of a stream spread over the replicas: the same global batches as on one device.

    Args:
        strategy: a `tf.distribute.Strategy`.
        stream: function from the first step to a `tf.data.Dataset` of global batches. If it also
            takes `shard`, every worker asks it for its `(index, count)` share alone; otherwise it
            makes whole batches and keeps its rows, which is needed where rows depend on others
            (`zoo.data.augmentation.mixing`).
        start_step: the first step.
        micro_batches: of a batch, on one replica: the steps whose gradients are accumulated.

    Returns:
        What `fit` takes: a `tf.data.Dataset`, or a distributed one.
    """
    if strategy.num_replicas_in_sync == 1:
        return in_micro_batches(stream(start_step), micro_batches, alone=True)

    def of_worker(context):
        workers, worker = context.num_input_pipelines, context.input_pipeline_id
        local = context.num_replicas_in_sync // workers
        if workers > 1 and "shard" in inspect.signature(stream).parameters:
            return in_micro_batches(stream(start_step, shard=(worker, workers)), local)
        own = range(worker * local, (worker + 1) * local)
        return in_micro_batches(stream(start_step), context.num_replicas_in_sync, own)

    return strategy.distribute_datasets_from_function(of_worker)


def _part(rows, index, count):
    size = rows.shape[0]
    if size is None:
        size = tf.shape(rows, out_type=tf.int64)[0]
    own = rows[size * index // count : size * (index + 1) // count]
    if isinstance(size, int) and size % count == 0:
        own = tf.ensure_shape(own, (size // count, *rows.shape[1:]))
    return own
