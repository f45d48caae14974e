"""The systems: `DualEncoder`, and one builder for each line of the grid."""

from zoo.models.dual_encoder import DualEncoder
from zoo.models.pcme import pcme
from zoo.models.presets import from_preset, list_presets, save_preset

__all__ = ["DualEncoder", "from_preset", "list_presets", "pcme", "save_preset"]
