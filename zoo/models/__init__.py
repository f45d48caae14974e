"""The systems: `DualEncoder`, and one builder for each line of the grid."""

from zoo.models.dual_encoder import DualEncoder
from zoo.models.infonce import infonce
from zoo.models.pcme import pcme
from zoo.models.pcmepp import pcmepp
from zoo.models.presets import from_preset, list_presets, save_preset
from zoo.models.vse_infinity import vse_infinity

__all__ = [
    "DualEncoder",
    "from_preset",
    "infonce",
    "list_presets",
    "pcme",
    "pcmepp",
    "save_preset",
    "vse_infinity",
]
