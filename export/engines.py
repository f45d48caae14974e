"""Writes a `DualEncoder`'s towers for engines that are not TensorFlow: ONNX, LiteRT, OpenVINO."""

import contextlib
import json
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from export.choices import ENGINES
from export.client_files import write_client
from export.saved_model import TOLERANCE, writing
from zoo.errors import InputError, require
from zoo.files.atomic import atomic_folder, write_text
from zoo.models.frozen import frozen, towers_of, with_batch, write_onnx
from zoo.retriever.stored_towers import open_onnx

LITERT_STORAGE = ("float32", "float16", "dynamic_range")


def export_engine(
    model,
    out,
    format,
    image_only=False,
    batch_size=None,
    image_size=None,
    storage="float32",
):
    """Writes `OUT`, a file for each tower: pixels to embedding, token ids to embedding.

    | in `OUT` | what |
    |---|---|
    | `images.*`, `captions.*` | the towers; ends `.onnx`, `.tflite`, or `.xml` and `.bin` |
    | `tokenizer.json` | for the package `tokenizers`, where it gives the model's ids |
    | `client.py` | how to ask, in a few lines |
    | `export.json` | inputs, outputs and the measured difference from Keras, for programs |

    Strings, JPEG bytes and the judge stay with a SavedModel: these engines have no such operations.

    Args:
        model: a `DualEncoder`.
        out: a folder that is not there yet.
        format: `"onnx"`, `"litert"` or `"openvino"`.
        image_only: without the caption tower.
        batch_size: the one size of a batch; None for any, and of a recurrent tower for LiteRT 1.
        image_size: where the image encoder leaves it free.
        storage: of LiteRT's weights: `"float32"`, `"float16"`, or `"dynamic_range"`, int8 with a
            scale for each channel. The other formats take float32.

    Returns:
        The path of the folder.

    Raises:
        InputError: if the model, the folder or an option does not fit, or a package is missing.
        RuntimeError: if the engine's float32 numbers are not Keras' to 1e-4.
    """
    out = Path(out)
    _check(out, format, batch_size, storage)
    towers = [
        # LiteRT's loops need a batch of known size.
        one if batch_size or format != "litert" or not one.is_recurrent else with_batch(one, 1)
        for one in towers_of(model, image_only, batch_size, image_size)
    ]
    with atomic_folder(out) as partial:
        files, errors = {}, {}
        for tower in towers:
            path = partial / f"{tower.side}{ENGINES[format]}"
            with writing(out):
                write_tower(path, tower, format, storage)
            inputs = tower.example(model)
            found, expected = opened(path, tower, format)(inputs), tower.expected(inputs)
            for name, values in expected.items():
                errors[f"{tower.side}/{name}"] = _difference(found[name], values)
            files[tower.side] = {
                "file": path.name,
                "input": list(tower.spec.shape),
                "dtype": tower.spec.dtype.name,
                "outputs": {name: list(expected[name].shape[1:]) for name in tower.outputs},
            }
        _check_errors(errors, storage)
        facts = {"format": format, "storage": storage, "towers": files, "largest_errors": errors}
        with writing(out):
            facts["tokenizer"] = write_client(partial, model, format, files)
            write_text(partial / "export.json", json.dumps(facts, indent=2) + "\n")
    return out


def write_tower(path, tower, format, storage="float32"):
    """Writes the file of one `FrozenTower`; arguments as of `export_engine`."""
    _ENGINES[format][0](frozen(tower, storage == "float16"), tower, path, storage)


def opened(path, tower, format):
    """A function from a tower's inputs to its embedding, computed by an engine.

    Args:
        path: of the tower's file.
        tower: an `zoo.models.frozen.FrozenTower`.
        format: of the file.
    """
    return _ENGINES[format][1](path, tower)


def _check(out, format, batch_size, storage):
    if format not in ENGINES:
        raise InputError(f"`format` must be one of {tuple(ENGINES)}; received {format!r}")
    if batch_size is not None and batch_size < 1:
        raise InputError(f"`batch_size` must be at least 1; received {batch_size}")
    if storage not in (LITERT_STORAGE if format == "litert" else ("float32",)):
        raise InputError(
            f"--storage must be one of {LITERT_STORAGE} with --format litert, and float32 with the "
            f"others; received {storage!r} with {format}"
        )
    if out.exists():
        raise InputError(f"{out}: exists already; expected a folder that is not there")


def _difference(found, expected):
    """The largest, of values above 1 relative to them; NaN where one is not finite."""
    return float(np.max(np.abs(found - expected) / np.maximum(1, np.abs(expected)), initial=0))


def _check_errors(errors, storage):
    limit = TOLERANCE if storage == "float32" else np.inf
    wrong = {name: error for name, error in errors.items() if not error <= limit}
    if wrong:
        raise RuntimeError(f"the export differs from its Keras model: {wrong}")


@contextlib.contextmanager
def _as_saved_model(function):
    module = tf.Module()
    module.function = function
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={"serving_default": function})
        yield folder


def _to_onnx(function, tower, path, storage):
    write_onnx(function, tower, path)


def _open_onnx(path, tower):
    ask = open_onnx(path)
    return lambda inputs: ask({tower.side: inputs})


def _to_litert(function, tower, path, storage):
    with _as_saved_model(function) as folder:
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if storage != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if storage == "float16":
            converter.target_spec.supported_types = [tf.float16]
        path.write_bytes(converter.convert())


def _open_litert(path, tower):
    interpreter = require("ai_edge_litert.interpreter", extra="engines")
    runner = interpreter.Interpreter(model_path=str(path)).get_signature_runner()
    return lambda inputs: runner(**{tower.side: inputs})


def _to_openvino(function, tower, path, storage):
    openvino = require("openvino", extra="engines")
    with _as_saved_model(function) as folder:
        network = openvino.convert_model(folder)
    openvino.save_model(network, path, compress_to_fp16=False)


def _open_openvino(path, tower):
    openvino = require("openvino", extra="engines")
    # f32: by default it may compute in bfloat16 where the processor can.
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    network = openvino.Core().compile_model(str(path), "CPU", exact)

    def ask(inputs):
        found = network(inputs)
        return {name: found[network.output(name)] for name in tower.outputs}

    return ask


_ENGINES = {
    "onnx": (_to_onnx, _open_onnx),
    "litert": (_to_litert, _open_litert),
    "openvino": (_to_openvino, _open_openvino),
}
