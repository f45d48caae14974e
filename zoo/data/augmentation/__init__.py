"""Augmentation: what training does to pictures and words; draws are a function of (seed, step)."""

from zoo.data.augmentation.augmentation import Augmentation

__all__ = ["Augmentation"]
