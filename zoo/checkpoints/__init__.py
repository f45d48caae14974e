"""Checkpoints that authors published, in the layouts of their official codes."""

from zoo.checkpoints.loading import FAMILIES, family_of, from_checkpoint, read_published
from zoo.models import presets

presets.READERS.append(read_published)

__all__ = ["FAMILIES", "family_of", "from_checkpoint"]
