"""Writes a `DualEncoder`'s towers as ONNX files, for engines that are not TensorFlow."""

import json
from pathlib import Path

import numpy as np

from export.saved_model import TOLERANCE, writing
from halo_search.errors import InputError
from halo_search.files.atomic import atomic_folder, write_text
from halo_search.towers.onnx import open_onnx
from halo_search.towers.piece_tokenizer import PieceTokenizer
from zoo.data.text.twin import tokenizer_of
from zoo.models.frozen import towers_of, write_onnx

TOKENIZER = "tokenizer.json"
_OPEN = """\
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else ONNX Runtime reports to Microsoft
import numpy as np
import onnxruntime


def tower(side):
    session = onnxruntime.InferenceSession(f"{side}.onnx")
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, {side: inputs})))

"""
_IDS = """\
from tokenizers import Tokenizer

ids = Tokenizer.from_file("tokenizer.json").encode_batch(["a small bird"])
embedding = tower("captions")(np.array([one.ids for one in ids], "int32"))
print({name: part.shape for name, part in embedding.items()})
"""


def export_onnx(model, out, image_only=False, batch_size=None, image_size=None):
    """Writes `OUT`, a file for each tower: pixels to embedding, token ids to embedding.

    | in `OUT` | what |
    |---|---|
    | `images.onnx`, `captions.onnx` | the towers; their large weights are in `NAME.data` beside |
    | `tokenizer.json` | for the package `tokenizers`, where it gives the model's ids |
    | `client.py` | how to ask, in a few lines |
    | `export.json` | inputs, outputs and the measured difference from Keras, for programs |

    Strings and JPEG bytes stay with a SavedModel: ONNX has no such operations.

    Args:
        model: a `DualEncoder`.
        out: a folder that is not there yet.
        image_only: without the caption tower.
        batch_size: the one size of a batch; None for any.
        image_size: where the image encoder leaves it free.

    Returns:
        The path of the folder.

    Raises:
        InputError: if the model, the folder or an option does not fit, or a package is missing.
        RuntimeError: if ONNX Runtime's numbers are not Keras' to 1e-4.
    """
    out = Path(out)
    if batch_size is not None and batch_size < 1:
        raise InputError(f"`batch_size` must be at least 1; received {batch_size}")
    if out.exists():
        raise InputError(f"{out}: exists already; expected a folder that is not there")
    towers = towers_of(model, image_only, batch_size, image_size)
    with atomic_folder(out) as partial:
        files, errors = {}, {}
        for tower in towers:
            path = partial / f"{tower.side}.onnx"
            with writing(out):
                write_onnx(tower, path)
            inputs = tower.example(model)
            found, expected = open_onnx(path)({tower.side: inputs}), tower.expected(inputs)
            for name, values in expected.items():
                errors[f"{tower.side}/{name}"] = _difference(found[name], values)
            files[tower.side] = {
                "file": path.name,
                "input": list(tower.spec.shape),
                "dtype": tower.spec.dtype.name,
                "outputs": {name: list(expected[name].shape[1:]) for name in tower.outputs},
            }
        wrong = {name: error for name, error in errors.items() if not error <= TOLERANCE}
        if wrong:
            raise RuntimeError(f"the export differs from its Keras model: {wrong}")
        facts = {"format": "onnx", "towers": files, "largest_errors": errors}
        with writing(out):
            facts["tokenizer"] = _write_client(partial, model, files)
            write_text(partial / "export.json", json.dumps(facts, indent=2) + "\n")
    return out


def _difference(found, expected):
    """The largest, of values above 1 relative to them; NaN where one is not finite."""
    return float(np.max(np.abs(found - expected) / np.maximum(1, np.abs(expected)), initial=0))


def _write_client(folder, model, towers):
    """Writes `client.py` and, where the package can read it, the tokenizer, whose name it
    returns."""
    written = None
    made = tokenizer_of(model.tokenizer) if "captions" in towers else None
    if made is not None and not isinstance(made, PieceTokenizer):
        made.save(str(folder / TOKENIZER))
        written = TOKENIZER
    shape = [size or 1 for size in towers["images"]["input"]]
    said = "pixels, 0 ... 255" if len(shape) == 4 else "features"
    lines = [
        f'"""Asks the towers of this folder: {said} and token ids in, embeddings out."""\n',
        _OPEN,
        f'pictures = np.zeros({tuple(shape)}, "float32")  # {said}',
        'print({name: part.shape for name, part in tower("images")(pictures).items()})',
    ]
    if written is not None:
        lines.append(_IDS)
    write_text(folder / "client.py", "\n".join(lines).rstrip("\n") + "\n")
    return written
