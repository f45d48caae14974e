"""Batches: for training, each a function of (seed, step); for encoding, all in order."""

from zoo.data.batches.batches import (
    caption_batches,
    class_pairs,
    image_batches,
    image_caption_pairs,
    images_with_captions,
    pairs,
    steps_per_epoch,
)

__all__ = [
    "caption_batches",
    "class_pairs",
    "image_batches",
    "image_caption_pairs",
    "images_with_captions",
    "pairs",
    "steps_per_epoch",
]
