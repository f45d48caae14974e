"""The pipeline behind every kind of training batch: what a step drew becomes tensors."""

import numpy as np
import tensorflow as tf

from zoo.data.pipeline.augmentation import Augmentation
from zoo.data.text.captions import token_ids
from zoo.files.seeding import step_seed

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
    """A `tf.data.Dataset` of training batches, each a pure function of the seed and the step: what
    a step drew becomes tensors."""
    index, count = shard
    num_images, num_captions = (size // count for size in sizes)
    augmentation = augmentation or Augmentation()
    captions_of = _captions(records, tokenizer, augmentation, shard)
    image_labels = tf.constant(records.image_labels)
    caption_labels = tf.constant(records.caption_labels)
    end = _FOREVER if num_steps is None else start_step + num_steps
    steps = tf.data.Dataset.range(start_step, end)

    def own(step):
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

    chosen = steps.map(own, num_parallel_calls=tf.data.AUTOTUNE)
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
    """Whether a batch can be made of so many, and divided. Raises ValueError if not."""
    index, count = shard
    if not 1 <= batch_size <= most or batch_size % count:
        raise ValueError(
            f"`batch_size` must be from 1 to the number of {of_what}, {most}, and a multiple of "
            f"the number of shards, {count}; received {batch_size}"
        )
    if not 0 <= index < count:
        raise ValueError(f"`shard` must be (index, count) with index < count; received {shard}")
