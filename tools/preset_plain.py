"""Rewrites a preset's captions without KerasHub's layers: it then loads without KerasHub.

    python -m tools.preset_plain zoo/presets/photos_pfe

The weights stay as they are. Presets that `tools.preset_photos` makes today need none of it.
"""

from pathlib import Path

import keras
import numpy as np

import zoo
from zoo.cli import OneLineParser, run
from zoo.encoders.sentence import sentences_of
from zoo.errors import InputError
from zoo.models.presets import CARD_FILE, PROBES_FILE, card_of, save_preset

MOST = 1e-6  # by which an embedding may change
TEXTS = ("a red bird", "", "two dogs, and a cat on the beach of an island", "un café " * 20)


def main(argv=None):
    options = _parser().parse_args(argv)
    if not (options.preset / CARD_FILE).is_file():
        raise InputError(f"{options.preset}: has no {CARD_FILE}; expected a preset")
    model = zoo.from_preset(options.preset)
    found = plain(model)
    before, after = (one.tower("captions").of_texts(TEXTS) for one in (model, found))
    differs = max(np.max(np.abs(after[key] - before[key])) for key in before)
    if not differs <= MOST:
        raise InputError(f"{options.preset}: an embedding would change by {differs:.2g}")
    files = [path for path in [options.preset / PROBES_FILE] if path.is_file()]
    card = card_of(options.preset)
    save_preset(found, options.preset, card, "int8", files, overwrite=True)
    print(f"{options.preset}: embeddings differ by {differs:.2g}")
    return 0


def plain(model):
    """The model with the weights of KerasHub's layers in those of `zoo.encoders.sentences`."""
    old = model.caption_encoder.get_layer("backbone")
    backbone = sentences_of(old.get_layer("frozen"), old.input_shape[1])
    backbone.trainable = False

    def layer(one):
        return backbone if one is old else one

    captions = keras.models.clone_model(model.caption_encoder, clone_function=layer)
    found = type(model).from_config({**model.get_config(), "caption_encoder": captions})
    for side, encoder in (("image_encoder", model.image_encoder), ("caption_encoder", captions)):
        getattr(found, side).set_weights(encoder.get_weights())
    found.similarity.set_weights(model.similarity.get_weights())
    return found


def _parser():
    parser = OneLineParser(prog="python -m tools.preset_plain", description=__doc__.split("\n")[0])
    parser.add_argument("preset", type=Path, help="folder to rewrite")
    return parser


if __name__ == "__main__":
    run(main)
