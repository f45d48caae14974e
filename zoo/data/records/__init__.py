"""Records: what a split of a data set is, and what was left out of it."""

from zoo.data.records.records import Loaded, Problems, Records, Skipped, joined

__all__ = ["Loaded", "Problems", "Records", "Skipped", "joined"]
