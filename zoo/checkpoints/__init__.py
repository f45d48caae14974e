"""Checkpoints that authors published, in the layouts of their official codes."""

from zoo.checkpoints.loading import FAMILIES, family_of, from_checkpoint

__all__ = ["FAMILIES", "family_of", "from_checkpoint"]
