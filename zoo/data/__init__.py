"""Data: loaders that return records and a pipeline, tokenisers, augmentation, batches."""

from zoo.data import batches, captions, cub, images, sources, toy_birds
from zoo.data.augmentation import Augmentation
from zoo.data.records import Loaded, Records, Skipped

__all__ = [
    "Augmentation",
    "Loaded",
    "Records",
    "Skipped",
    "batches",
    "captions",
    "cub",
    "images",
    "sources",
    "toy_birds",
]
