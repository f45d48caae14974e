"""The systems: `DualEncoder`, and one builder for each line of the grid."""

from zoo.models.dual_encoder import DualEncoder
from zoo.models.gaussian_vse import gaussian, gaussian_vsepp, gaussian_vsrn
from zoo.models.pcme import hib, pcme, pcme_bert
from zoo.models.pfe import pfe
from zoo.models.points import vector_points
from zoo.models.pooled import infonce, pcmepp, vse_infinity
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
    "gaussian",
    "gaussian_vsepp",
    "gaussian_vsrn",
    "hib",
    "infonce",
    "pcme",
    "pcme_bert",
    "pcmepp",
    "pfe",
    "pvse",
    "sgraf",
    "vector_points",
    "vse0",
    "vse_infinity",
    "vsepp",
    "vsrn",
    "with_captioning",
]
