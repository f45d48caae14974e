"""Batches: for training, each a pure function of (seed, step); for encoding, all in order.

A batch is a dict: `images` (float32 pictures in 0 … 255, or features), `captions` (int32 word
ids, or float32 vectors of records with `caption_vectors`), `image_labels` and `caption_labels`
(int32; equal labels match), and, of records with semantics, `semantic` (float32, the batch's
images × all its captions over all shards).
"""

from typing import Any

import numpy as np
import tensorflow as tf

from zoo.data.pipeline.augmentation import Augmentation
from zoo.data.records import Records
from zoo.data.text.captions import token_ids
from zoo.images import pictures as images
from zoo.images.seeding import epoch_order, step_seed, uniform

_CLASSES, _MEMBERS, _SEVERAL = 21, 22, 24


def class_pairs(
    records: Records,
    tokenizer: Any,
    source: Any,
    batch_size: int | None = None,
    seed: int = 0,
    shard: tuple[int, int] = (0, 1),
    pairs_per_class: int = 1,
    **options: Any,
) -> tf.data.Dataset:
    """One caption with its image from each of the classes, as PCME trains on CUB.

    A caption's class is drawn first (all classes, or as many random ones as the batch holds), then
    one of its captions, each with the same probability.

    Args:
        records: of the training split.
        tokenizer: strings to ids, such as `captions.WordTokenizer`; None of vectors.
        source: `sources.Pictures` or `sources.Features` of these records.
        batch_size: pairs a batch over all shards (else a ValueError), at most `pairs_per_class` of
            every class, which is the default.
        seed: of everything random.
        shard: `(index, count)`: yield the `index`-th of `count` equal pieces of every batch.
        pairs_per_class: how many captions of a class, drawn alone each.
        **options: `start_step`, the first step to yield; `num_steps`, how many, by default without
            end; `augmentation`, an `Augmentation`.

    Returns:
        A `tf.data.Dataset` of batches of fixed shapes. Step s is the same wherever the run started.

    Reference: PCME (Chun et al., CVPR 2021), supplementary A.
    """
    labels, counts = np.unique(records.caption_labels, return_counts=True)
    most = pairs_per_class * len(labels)
    batch_size = most if batch_size is None else batch_size
    check_sizes(batch_size, most, "pairs of all classes", shard)
    if pairs_per_class < 1 or batch_size % pairs_per_class:
        raise ValueError(
            f"`pairs_per_class` must be a whole number ≥ 1 that divides the {batch_size} pairs of "
            f"a batch; received {pairs_per_class}"
        )
    members = tf.constant(np.argsort(records.caption_labels, kind="stable"))
    starts = tf.constant(np.cumsum(counts) - counts)
    counts = tf.constant(counts)
    caption_image = tf.constant(records.caption_image)

    def draw(step):
        chosen = step_seed(seed, step)
        classes = tf.argsort(uniform(chosen, _CLASSES, 1, len(labels))[0])
        classes = tf.repeat(classes[: batch_size // pairs_per_class], pairs_per_class)
        size = tf.gather(counts, classes)
        share = uniform(chosen, _MEMBERS, 1, batch_size)[0]
        place = tf.cast(tf.cast(share, tf.float64) * tf.cast(size, tf.float64), tf.int64)
        chosen = tf.gather(members, tf.gather(starts, classes) + place)
        return tf.gather(caption_image, chosen), chosen

    sizes = (batch_size, batch_size)
    return training(records, tokenizer, source, draw, sizes, seed=seed, shard=shard, **options)


def image_caption_pairs(
    records: Records,
    tokenizer: Any,
    source: Any,
    batch_size: int,
    seed: int = 0,
    shard: tuple[int, int] = (0, 1),
    **options: Any,
) -> tf.data.Dataset:
    """Captions with their images, every caption once an epoch, in an order of that epoch's own.

    The captions that fill no batch are left out of an epoch, other ones each time. Captions of one
    image may meet in a batch; their labels are equal. Args as of `class_pairs`.
    """
    total = records.num_captions
    check_sizes(batch_size, total, "captions", shard)
    caption_image = tf.constant(records.caption_image)

    def draw(step):
        chosen = epoch_order(seed, step, batch_size, total)
        return tf.gather(caption_image, chosen), chosen

    sizes = (batch_size, batch_size)
    return training(records, tokenizer, source, draw, sizes, seed=seed, shard=shard, **options)


def images_with_captions(
    records: Records,
    tokenizer: Any,
    source: Any,
    batch_size: int,
    captions_per_image: int | None = None,
    seed: int = 0,
    shard: tuple[int, int] = (0, 1),
    **options: Any,
) -> tf.data.Dataset:
    """Images with all, or several, of their captions; every image once an epoch.

    `images` and `image_labels` have `batch_size` rows, `captions` and `caption_labels`
    `captions_per_image` times as many, those of an image one after the other.

    Args:
        records, tokenizer, source, seed, shard, options: as for `class_pairs`.
        batch_size: images a batch over all shards.
        captions_per_image: drawn anew each time of an image that has more; if one has fewer, a
            ValueError. None: as many as the image with the fewest has.

    Reference: DivE (Kim et al., CVPR 2023), section 4.2.
    """
    total = records.num_images
    check_sizes(batch_size, total, "images", shard)
    counts = np.bincount(records.caption_image, minlength=total)
    each = int(counts.min()) if captions_per_image is None else captions_per_image
    if not 1 <= each <= counts.min():
        raise ValueError(
            f"`captions_per_image` must be from 1 to {counts.min()}, the fewest that an image has; "
            f"received {captions_per_image}"
        )
    members = tf.constant(np.argsort(records.caption_image, kind="stable"))
    starts, most = tf.constant(np.cumsum(counts) - counts), int(counts.max())
    counts = tf.constant(counts)

    def draw(step):
        chosen = epoch_order(seed, step, batch_size, total)
        keys = uniform(step_seed(seed, step), _SEVERAL, batch_size, most)
        there = tf.range(most, dtype=tf.int64) < tf.gather(counts, chosen)[:, None]
        # The smallest keys of those that are there, in the order of the captions.
        places = tf.argsort(tf.where(there, keys, 2.0), axis=1)[:, :each]
        places = tf.cast(tf.sort(places, axis=1), tf.int64)
        captions = tf.gather(members, tf.gather(starts, chosen)[:, None] + places)
        return chosen, tf.reshape(captions, [-1])

    sizes = (batch_size, batch_size * each)
    return training(records, tokenizer, source, draw, sizes, seed=seed, shard=shard, **options)


def image_batches(records: Records, source: Any, batch_size: int = 64) -> tf.data.Dataset:
    """All images in order, for encoding: `images` and `image_labels`; none is dropped."""
    labels = tf.data.Dataset.from_tensor_slices(records.image_labels).batch(batch_size)
    shown = source.in_order(batch_size).map(lambda batch: tf.cast(batch, tf.float32))
    batches = tf.data.Dataset.zip({"images": shown, "image_labels": labels})
    return batches.prefetch(tf.data.AUTOTUNE)


def caption_batches(records: Records, tokenizer: Any, batch_size: int = 256) -> tf.data.Dataset:
    """All captions in order, for encoding: `captions` and `caption_labels`."""
    if records.caption_vectors is not None:
        vectors = records.caption_vectors.in_order(batch_size)
        labels = tf.data.Dataset.from_tensor_slices(records.caption_labels).batch(batch_size)
        shown = vectors.map(lambda batch: tf.cast(batch, tf.float32))
        batches = tf.data.Dataset.zip({"captions": shown, "caption_labels": labels})
        return batches.prefetch(tf.data.AUTOTUNE)
    columns = {
        "captions": token_ids(tokenizer, records.captions),
        "caption_labels": records.caption_labels,
    }
    batches = tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)
    return batches.prefetch(tf.data.AUTOTUNE)


def pairs(records: Records, image_size: int | None = 224) -> tf.data.Dataset:
    """Every caption with its image, one an element: `images` float32 `(image_size, image_size, 3)`
    in 0 … 255, or paths (None); `captions` string, `image_labels`, `caption_labels` int32."""
    columns = {
        "images": list(records.image_paths[records.caption_image]),
        "captions": list(records.captions),
        "image_labels": records.caption_labels,
        "caption_labels": records.caption_labels,
    }

    def load(element):
        picture = images.prepare(tf.io.read_file(element["images"]), image_size)
        return {**element, "images": tf.cast(picture, tf.float32)}

    dataset = tf.data.Dataset.from_tensor_slices(columns)
    if image_size is None:
        return dataset
    return dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)


_FOREVER = np.iinfo(np.int64).max


# No step has a branch that depends on a tensor, and AutoGraph takes a second to find that out.
@tf.autograph.experimental.do_not_convert
def training(
    records,
    tokenizer,
    source,
    draw,
    sizes,
    seed=0,
    shard=(0, 1),
    start_step=0,
    num_steps=None,
    augmentation=None,
):
    """Training batches, each a pure function of the seed and the step: what it drew as tensors."""
    index, count = shard
    num_images, num_captions = (size // count for size in sizes)
    augmentation = augmentation or Augmentation()
    captions_of = _captions(records, tokenizer, augmentation, shard)
    image_labels = tf.constant(records.image_labels)
    caption_labels = tf.constant(records.caption_labels)
    end = _FOREVER if num_steps is None else start_step + num_steps
    steps = tf.data.Dataset.range(start_step, end)

    def build_batch(step):
        pictures, texts = draw(step)
        own_pictures = tf.ensure_shape(
            pictures[index * num_images : (index + 1) * num_images], (num_images,)
        )
        own_texts = tf.ensure_shape(
            texts[index * num_captions : (index + 1) * num_captions], (num_captions,)
        )
        if records.semantics is None:
            return own_pictures, own_texts, {}
        # The rows of this shard's images: over all captions, as losses are of the whole batch.
        texts = tf.ensure_shape(texts, sizes[1:])
        part = records.semantics.of_batch(own_pictures, texts)
        return own_pictures, own_texts, {"semantic": part}

    def assemble(step, chosen, pictures):
        key = step_seed(seed, step)
        chosen_images, chosen_captions, more = chosen
        pictures = tf.ensure_shape(pictures, (num_images, *source.shape))
        shown = augmentation.on_images(pictures, key, source.fill, shard)
        return {
            "images": tf.cast(shown, tf.float32),
            "captions": captions_of(chosen_captions, key),
            "image_labels": tf.gather(image_labels, chosen_images),
            "caption_labels": tf.gather(caption_labels, chosen_captions),
            **more,
        }

    chosen = steps.map(build_batch, num_parallel_calls=tf.data.AUTOTUNE)
    wanted = chosen.map(lambda chosen_images, *_: chosen_images)
    if augmentation.crop is None:
        pictures = source.take(wanted)
    else:
        draws = steps.map(
            lambda step: augmentation.crop.draws(step_seed(seed, step), num_images, shard)
        )
        pictures = source.take_parts(wanted, draws, augmentation.crop)
    batches = tf.data.Dataset.zip(steps, chosen, pictures)
    batches = batches.map(assemble, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)


def _captions(records, tokenizer, augmentation, shard):
    """A function from the indices of captions and a key to what a model reads of them."""
    if records.caption_vectors is not None:
        if augmentation.word_dropping:
            raise ValueError(
                "`augmentation.word_dropping` must be 0 for captions that are vectors; received "
                f"{augmentation.word_dropping}"
            )
        return lambda chosen, key: tf.cast(records.caption_vectors.gather(chosen), tf.float32)
    ids = tf.constant(token_ids(tokenizer, records.captions))
    word_ids = tokenizer.word_ids  # numbers here, in the graph they would be tensors
    return lambda chosen, key: augmentation.on_captions(
        tf.gather(ids, chosen), key, word_ids, shard
    )


def check_sizes(batch_size, most, of_what, shard):
    """Raises ValueError unless a batch can be made of so many, and divided."""
    index, count = shard
    if not 1 <= batch_size <= most or batch_size % count:
        raise ValueError(
            f"`batch_size` must be from 1 to the number of {of_what}, {most}, and a multiple of "
            f"the number of shards, {count}; received {batch_size}"
        )
    if not 0 <= index < count:
        raise ValueError(f"`shard` must be (index, count) with index < count; received {shard}")
