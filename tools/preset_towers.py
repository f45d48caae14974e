"""Writes the ONNX towers of a packaged preset beside its weights.

    python -m tools.preset_towers photos_pfe toy_birds_pfe

Run it again when the weights of a preset, or `zoo.models.frozen`, have changed. The towers name the
arrays of the preset's own `model.weights.h5` and hold none of them.
"""

import shutil

from halo_search import presets
from halo_search.cli.parser import OneLineParser, run
from halo_search.errors import InputError
from halo_search.files.atomic import atomic_folder
from zoo.answering import KerasModel
from zoo.answering.write_towers import pack_towers


def main(argv=None):
    parser = OneLineParser(prog="python -m tools.preset_towers", description=__doc__)
    parser.add_argument("presets", nargs="+", metavar="PRESET", help="names of presets")
    for name in parser.parse_args(argv).presets:
        preset = presets.folder_of(name)
        if preset is None:
            raise InputError(f"{name}: no such preset; there are {', '.join(presets.names())}")
        with atomic_folder(preset / presets.TOWERS, replace=True) as folder:
            shutil.rmtree(folder)
            pack_towers(KerasModel.of(name), preset, folder)
        print(preset / presets.TOWERS)


if __name__ == "__main__":
    run(main)
