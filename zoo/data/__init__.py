"""Data: loaders that return records and a pipeline, tokenisers, augmentation, batches."""

from zoo.data import (
    batches,
    captions,
    coco,
    cub,
    features,
    flickr30k,
    images,
    own_pairs,
    regions,
    sources,
    toy_birds,
    toy_scenes,
)
from zoo.data.augmentation import Augmentation
from zoo.data.records import Loaded, Records, Skipped

__all__ = [
    "Augmentation",
    "Loaded",
    "Records",
    "Skipped",
    "batches",
    "captions",
    "coco",
    "cub",
    "features",
    "flickr30k",
    "images",
    "own_pairs",
    "regions",
    "sources",
    "toy_birds",
    "toy_scenes",
]
