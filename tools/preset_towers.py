"""Packs a preset's towers as ONNX, which every index of the preset then takes from it.

    python -m tools.preset_towers zoo/presets/photos_pfe

Writes towers.zip into the preset's folder: graphs without the weights, which the model has.
"""

import tempfile
from pathlib import Path

import zoo
from zoo.cli import OneLineParser, run
from zoo.models.presets import shown_pictures
from zoo.retriever import packed_towers
from zoo.retriever.write_towers import write_sides


def main(argv=None):
    options = _parser().parse_args(argv)
    model = zoo.from_preset(options.preset)
    out = options.preset / packed_towers.FILE
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shown = shown_pictures(model, options.preset)
        sides = write_sides(folder, model, "captions", shown)
        packed_towers.pack(folder, model, sides, out)
    print(f"{out}: {', '.join(sorted(sides))}, {out.stat().st_size / 1e6:.2f} MB")
    return 0


def _parser():
    parser = OneLineParser(prog="python -m tools.preset_towers", description=__doc__.split("\n")[0])
    parser.add_argument("preset", type=Path, help="folder of a preset")
    return parser


if __name__ == "__main__":
    run(main)
