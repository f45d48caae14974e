"""Sources: where the images of a batch come from, and what a frozen network made of them."""

from zoo.data.sources.sources import Features, Pictures

__all__ = ["Features", "Pictures"]
