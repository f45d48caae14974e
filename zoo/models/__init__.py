"""The systems: `DualEncoder`, and one builder for each line of the grid."""

from zoo.errors import lookup
from zoo.models.dual_encoder import DualEncoder
from zoo.models.gaussian_vse import gaussian, gaussian_vsepp, gaussian_vsrn
from zoo.models.pcme import hib, pcme, pcme_bert
from zoo.models.pfe import pfe
from zoo.models.points import vector_points
from zoo.models.pooled import infonce, pcmepp, vse_infinity
from zoo.models.presets import from_preset, list_presets, save_preset
from zoo.models.run_folder import RunFolder
from zoo.models.sets import SIMILARITIES as SET_SIMILARITIES
from zoo.models.sets import dive, pvse
from zoo.models.sgraf import sgraf
from zoo.models.tower import Forward, Tower
from zoo.models.vse import vse0, vsepp, vsrn, with_captioning

__all__ = [
    "SET_SIMILARITIES",
    "DualEncoder",
    "Forward",
    "RunFolder",
    "Tower",
    "dive",
    "from_preset",
    "gaussian",
    "gaussian_vsepp",
    "gaussian_vsrn",
    "hib",
    "infonce",
    "list_presets",
    "pcme",
    "pcme_bert",
    "pcmepp",
    "pfe",
    "pvse",
    "save_preset",
    "sgraf",
    "vector_points",
    "vse0",
    "vse_infinity",
    "vsepp",
    "vsrn",
    "with_captioning",
]

__getattr__ = lookup(__name__)  # names of earlier versions
