"""The systems: `DualEncoder`, and one builder for each line of the grid."""

from zoo.models.asymvlm import asymvlm
from zoo.models.dive import dive
from zoo.models.dual_encoder import DualEncoder
from zoo.models.exported import ExportedModel
from zoo.models.forward import Forward
from zoo.models.gaussian import gaussian
from zoo.models.gaussian_vse import gaussian_vsepp, gaussian_vsrn
from zoo.models.hib import hib
from zoo.models.hub_models import keras_hub
from zoo.models.infonce import infonce
from zoo.models.laplace import laplace
from zoo.models.pcme import pcme
from zoo.models.pcme_bert import pcme_bert
from zoo.models.pcmepp import pcmepp
from zoo.models.pfe import pfe
from zoo.models.preset_folder import save_preset
from zoo.models.presets import from_preset, list_presets
from zoo.models.pvse import pvse
from zoo.models.sets import SIMILARITIES as SET_SIMILARITIES
from zoo.models.sgraf import sgraf
from zoo.models.tower import Tower
from zoo.models.vector_points import vector_points
from zoo.models.vse import vse0, vsepp
from zoo.models.vse_infinity import vse_infinity
from zoo.models.vsrn import vsrn, with_captioning

__all__ = [
    "SET_SIMILARITIES",
    "DualEncoder",
    "ExportedModel",
    "Forward",
    "Tower",
    "asymvlm",
    "dive",
    "from_preset",
    "gaussian",
    "gaussian_vsepp",
    "gaussian_vsrn",
    "hib",
    "infonce",
    "keras_hub",
    "laplace",
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
