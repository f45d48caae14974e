"""Batches: for training, each a pure function of (seed, step); for encoding, all in order.

A batch is a dict: `images` (float32 pictures in 0 … 255, or features), `captions` (int32 word
ids), `image_labels` and `caption_labels` (int32; equal labels match).
"""

import numpy as np
import tensorflow as tf

from zoo.data import images
from zoo.data.augmentation import Augmentation
from zoo.data.captions import token_ids
from zoo.data.draws import step_seed, uniform

_CLASSES, _MEMBERS, _EPOCH = 21, 22, 23
_FOREVER = np.iinfo(np.int64).max


def class_pairs(
    records,
    tokenizer,
    source,
    batch_size=None,
    seed=0,
    start_step=0,
    num_steps=None,
    augmentation=None,
    shard=(0, 1),
):
    """One caption with its image from each of the classes, as PCME trains on CUB.

    A caption's class is drawn first (all classes, or a random `batch_size` of them), then one of
    its captions, each with the same probability.

    Args:
        records: of the training split.
        tokenizer: strings to ids, such as `captions.WordTokenizer`.
        source: `sources.Pictures` or `sources.Features` of these records.
        batch_size: pairs a batch over all shards, at most the number of classes; None: all.
        seed: of everything random.
        start_step: the first step to yield, so that a resumed run goes on where it was.
        num_steps: how many steps to yield, None: for ever.
        augmentation: an `Augmentation`, None: nothing.
        shard: `(index, count)`: yield the `index`-th of `count` equal pieces of every batch.

    Returns:
        A `tf.data.Dataset` of batches of fixed shapes. Step s is the same whatever the number of
        parallel calls and wherever the run started.

    Raises:
        ValueError: if `batch_size` is no number from 1 to the number of classes that `shard`
            divides.

    Reference: PCME (Chun et al., CVPR 2021), supplementary A.
    """
    labels, counts = np.unique(records.caption_labels, return_counts=True)
    batch_size = len(labels) if batch_size is None else batch_size
    _check_sizes(batch_size, len(labels), "classes", shard)
    members = tf.constant(np.argsort(records.caption_labels, kind="stable"))
    starts = tf.constant(np.cumsum(counts) - counts)
    counts = tf.constant(counts)

    def draw(step):
        chosen = step_seed(seed, step)
        classes = tf.argsort(uniform(chosen, _CLASSES, 1, len(labels))[0])[:batch_size]
        size = tf.gather(counts, classes)
        share = uniform(chosen, _MEMBERS, 1, batch_size)[0]
        place = tf.cast(tf.cast(share, tf.float64) * tf.cast(size, tf.float64), tf.int64)
        return tf.gather(members, tf.gather(starts, classes) + place)

    return _training(
        records,
        tokenizer,
        source,
        draw,
        batch_size,
        seed,
        start_step,
        num_steps,
        augmentation,
        shard,
    )


def image_caption_pairs(
    records,
    tokenizer,
    source,
    batch_size,
    seed=0,
    start_step=0,
    num_steps=None,
    augmentation=None,
    shard=(0, 1),
):
    """Captions with their images, every caption once an epoch, in an order of that epoch's own.

    An epoch has `steps_per_epoch(records, batch_size)` steps; the captions that fill no batch are
    left out of it, other ones each time. Several captions of an image may meet in a batch; their
    labels are equal.

    Args and Returns as for `class_pairs`, except that `batch_size` may be up to the number of
    captions.

    Raises:
        ValueError: if `batch_size` is no number from 1 to that of captions that `shard` divides.
    """
    total = records.num_captions
    _check_sizes(batch_size, total, "captions", shard)
    per_epoch = steps_per_epoch(records, batch_size)

    def draw(step):
        epoch, position = step // per_epoch, step % per_epoch
        key = tf.random.fold_in(step_seed(seed, epoch), _EPOCH, alg="philox")
        places = position * batch_size + tf.range(batch_size, dtype=tf.int64)
        # A permutation that is computed where it is needed, not stored.
        return tf.random.experimental.index_shuffle(places, key, tf.cast(total - 1, tf.int64))

    return _training(
        records,
        tokenizer,
        source,
        draw,
        batch_size,
        seed,
        start_step,
        num_steps,
        augmentation,
        shard,
    )


def steps_per_epoch(records, batch_size):
    """How many whole batches the captions make."""
    return records.num_captions // batch_size


def image_batches(records, source, batch_size=64):
    """All images in order, for encoding: `images` and `image_labels`; none is dropped."""
    labels = tf.data.Dataset.from_tensor_slices(records.image_labels).batch(batch_size)
    shown = source.in_order(batch_size).map(lambda batch: tf.cast(batch, tf.float32))
    batches = tf.data.Dataset.zip({"images": shown, "image_labels": labels})
    return batches.prefetch(tf.data.AUTOTUNE)


def caption_batches(records, tokenizer, batch_size=256):
    """All captions in order, for encoding: `captions` and `caption_labels`."""
    columns = {
        "captions": token_ids(tokenizer, records.captions),
        "caption_labels": records.caption_labels,
    }
    batches = tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)
    return batches.prefetch(tf.data.AUTOTUNE)


def pairs(records, image_size=224):
    """Every caption with its image, one an element, in the order of the captions.

    `images` float32 `(image_size, image_size, 3)`, `captions` string, `image_labels` and
    `caption_labels` int32: what `.batch(n)` turns into batches that only lack tokenising. With
    `image_size` None, `images` holds the paths.
    """
    columns = {
        "images": list(records.image_paths[records.caption_image]),
        "captions": list(records.captions),
        "image_labels": records.caption_labels,
        "caption_labels": records.caption_labels,
    }

    def load(element):
        return {**element, "images": images.resize(images.read(element["images"]), image_size)}

    dataset = tf.data.Dataset.from_tensor_slices(columns)
    if image_size is None:
        return dataset
    return dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)


def _check_sizes(batch_size, most, of_what, shard):
    index, count = shard
    if not 1 <= batch_size <= most or batch_size % count:
        raise ValueError(
            f"`batch_size` must be from 1 to the number of {of_what}, {most}, and a multiple of "
            f"the number of shards, {count}; received {batch_size}"
        )
    if not 0 <= index < count:
        raise ValueError(f"`shard` must be (index, count) with index < count; received {shard}")


def _training(
    records, tokenizer, source, draw, batch_size, seed, start_step, num_steps, augmentation, shard
):
    """The pipeline behind both: `draw` gives the captions of a step's whole batch."""
    index, count = shard
    rows = batch_size // count
    augmentation = augmentation or Augmentation()
    ids = tf.constant(token_ids(tokenizer, records.captions))
    vocabulary_size = tokenizer.vocabulary_size()
    caption_image = tf.constant(records.caption_image)
    labels = tf.constant(records.caption_labels)
    end = _FOREVER if num_steps is None else start_step + num_steps
    steps = tf.data.Dataset.range(start_step, end)

    def own(step):
        return tf.ensure_shape(draw(step)[index * rows : (index + 1) * rows], (rows,))

    def assemble(step, chosen, pictures):
        key = step_seed(seed, step)
        pictures = tf.ensure_shape(pictures, (rows, *source.shape))
        shown = augmentation.on_images(pictures, key, source.fill, shard)
        label = tf.gather(labels, chosen)
        words = tf.gather(ids, chosen)
        return {
            "images": tf.cast(shown, tf.float32),
            "captions": augmentation.on_captions(words, key, vocabulary_size, shard),
            "image_labels": label,
            "caption_labels": label,
        }

    chosen = steps.map(own, num_parallel_calls=tf.data.AUTOTUNE)
    pictures = source.take(chosen.map(lambda caption: tf.gather(caption_image, caption)))
    batches = tf.data.Dataset.zip(steps, chosen, pictures)
    batches = batches.map(assemble, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)
