"""Trains the upper blocks of a preset's text network through, over stored vectors of pictures.

First the heads alone by InfoNCE, then the heads and the blocks, at a small rate.
"""

import keras
import numpy as np
import tensorflow as tf

from zoo import encoders, training
from zoo.data.text.captions import token_ids
from zoo.encoders.point_towers import HEAD

BLOCKS, DROPOUT = 3, 0.1
HEADS, TEXT = {"epochs": 10, "rate": 1e-3}, {"epochs": 4, "rate": 3e-4}
AGAIN = {"epochs": 6, "rate": 1e-3}  # of heads that are trained already
WARM_UP = 0.2  # of the steps: a short one undoes in its first epoch what MiniLM has learnt
OF_BLOCKS = 1 / 6  # of the heads' rate
OF_HEADS = "embedding", "log_scale"  # in the names of what the heads train
BATCH, GROUP = 512, 8  # batches of captions of about one length, which need little padding


def trained_through(model, train, seed):
    """The text network of points, its upper blocks trained after the heads, over a split of stored
    vectors."""
    heads = model.with_image_encoder(encoders.head_alone(model.image_encoder))
    on_vectors = heads.with_caption_encoder(encoders.head_alone(model.caption_encoder))
    fit(on_vectors, train, None, seed, **HEADS)
    return with_blocks(model, train, seed).caption_encoder.get_layer("backbone")


def with_blocks(model, train, seed):
    """A model of points whose upper blocks of text are trained with its heads, as they are."""
    heads = model.with_image_encoder(encoders.head_alone(model.image_encoder))
    backbone = model.caption_encoder.get_layer("backbone")
    thawed = encoders.with_trainable_blocks(backbone, BLOCKS, DROPOUT)
    old, dim = model.caption_encoder, model.caption_encoder.get_layer("embedding").units
    rate = old.get_layer("dropout").rate
    new = encoders.vector_encoder(thawed, dim, rate, seed, side="captions")
    _take_head(new, old)
    # Batches of one length have other statistics than all captions.
    new.get_layer(HEAD[0]).trainable = False
    ids = token_ids(model.tokenizer, train.records.captions)
    fit(heads.with_caption_encoder(new), train, ids, seed + 1, **TEXT)
    frozen = encoders.with_trainable_blocks(thawed, 0)
    encoder = encoders.vector_encoder(frozen, dim, rate, seed, side="captions")
    _take_head(encoder, new)
    return model.with_caption_encoder(encoder)


def _take_head(tower, other):
    """Sets what a tower learns over its network to another's."""
    for name in HEAD:
        tower.get_layer(name).set_weights(other.get_layer(name).get_weights())


def fit(heads, train, ids, seed, epochs, rate):
    """Fits heads to stored vectors; with `ids`, also the blocks of text that read these, at a
    smaller rate."""
    records, rng = train.records, np.random.default_rng(seed)
    steps = records.num_captions // BATCH
    rising = int(WARM_UP * epochs * steps)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, epochs * steps - rising, warmup_target=rate, warmup_steps=rising
    )
    paths = [variable.path for variable in heads.trainable_variables]
    rates = {path: OF_BLOCKS for path in paths if not any(name in path for name in OF_HEADS)}
    heads.compile(training.LayerwiseAdamW(schedule, rates=rates, weight_decay=0.0, beta_2=0.98))

    def batches():
        lengths = None if ids is None else np.count_nonzero(ids, axis=1)
        for _ in range(epochs):
            for rows in _rows(records.num_captions, lengths, rng):
                owners = records.caption_image[rows].astype(np.int32)
                if ids is None:
                    captions = records.caption_vectors.gather(tf.constant(rows))
                else:
                    captions = ids[rows, : lengths[rows].max()]
                yield {
                    "images": tf.cast(train.source.gather(tf.constant(owners)), tf.float32),
                    "captions": captions,
                    "image_labels": owners,
                    "caption_labels": owners,
                }

    labels = tf.TensorSpec((None,), tf.int32)
    spec = {
        "images": tf.TensorSpec((None, *train.source.shape), tf.float32),
        "captions": tf.TensorSpec((None, None), tf.float32 if ids is None else tf.int32),
        "image_labels": labels,
        "caption_labels": labels,
    }
    fed = tf.data.Dataset.from_generator(batches, output_signature=spec).prefetch(2)
    heads.fit(fed, epochs=epochs, steps_per_epoch=steps, verbose=2)


def _rows(count, lengths, rng):
    """The rows of an epoch's batches; by lengths, those of about one length together."""
    rows = rng.permutation(count)[: count // BATCH * BATCH]
    for start in range(0, len(rows), BATCH * GROUP):
        group = rows[start : start + BATCH * GROUP]
        if lengths is not None:
            group = group[np.argsort(lengths[group] + rng.normal(size=len(group)))]
        parts = np.split(group, len(group) // BATCH)
        yield from (parts[number] for number in rng.permutation(len(parts)))
