"""Writes a `DualEncoder` as a versioned SavedModel that TensorFlow Serving takes as it is."""

import contextlib
import json
from pathlib import Path

import tensorflow as tf

from export.choices import MAX_PIXELS, STORAGE
from export.comparison import compare
from export.model_card import describe, write_card
from export.serving_files import write_batching, write_server_files
from export.signatures import Signatures
from export.warmup import write_warmup
from halo_search.errors import InputError
from halo_search.files.atomic import atomic_folder, write_text

TOLERANCE = 1e-4  # of float32; far above rounding, far below any mistake


def export_model(
    model,
    out,
    version=1,
    image_only=False,
    index=True,
    batch_size=None,
    image_size=None,
    storage="float32",
    resize="crop",
    crop_fraction=1.0,
    max_pixels=MAX_PIXELS,
    config=None,
    metrics=None,
):
    """Writes `OUT/VERSION` and, in a new `OUT`, the server's files. All or nothing.

    | in `OUT` | what |
    |---|---|
    | `VERSION/` | the SavedModel, `batching_params.pbtxt`, warm-up requests, `model_card.md` |
    | `VERSION/export.json` | signatures, settings and measured errors, for programs |
    | `models.config`, `monitoring.config`, `compose.yaml` | for the server |

    Args:
        model: a `DualEncoder`.
        out: the folder of the versions.
        version: a whole number of at least 1, that is not there yet.
        image_only, index, batch_size, image_size, storage, resize, crop_fraction, max_pixels: see
            `export.signatures.Signatures`.
        config, metrics: of the run, for the card.

    Returns:
        The folder `OUT/VERSION`.

    Raises:
        InputError: if the version exists, `out` holds other files or cannot be written, or the
            model cannot be served.
        RuntimeError: if the saved float32 model does not give the Keras model's numbers.
    """
    out = Path(out)
    _check(out, version, batch_size, storage)
    target = out / str(version)
    settings = {
        "image_only": image_only,
        "batch_size": batch_size,
        "storage": storage,
        "resize": resize,
        "crop_fraction": crop_fraction,
        "max_pixels": max_pixels,
    }
    module = Signatures(model, index=index, image_size=image_size, **settings)
    concrete = module.concrete()
    is_new = not out.exists()
    with atomic_folder(out if is_new else target) as unfinished:
        folder = unfinished / target.name if is_new else unfinished
        with writing(out):
            tf.saved_model.save(module, str(folder), signatures=concrete)
            write_batching(folder, batch_size)
            write_warmup(folder, concrete, model.tokenizer, batch_size)
        errors = compare(folder, model, batch_size, resize, crop_fraction)
        if storage == "float32":
            _check_errors(errors)
        facts = describe(model, concrete, settings, errors)
        with writing(out):
            write_text(folder / "export.json", json.dumps(facts, indent=2) + "\n")
            write_card(folder / "model_card.md", facts, config, metrics)
            if is_new:
                write_server_files(unfinished)
    return target


@contextlib.contextmanager
def writing(out):
    """Errors of the disk name the folder that was asked for, not the unfinished one."""
    try:
        yield
    except InputError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise InputError(f"{out}: cannot be written: {error.__cause__.strerror}") from error
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}") from error
    except tf.errors.OpError as error:
        reason = error.message.strip().split("\n")[0]
        raise InputError(f"{out}: cannot be written: {reason}") from error


def _check(out, version, batch_size, storage):
    for name, value in (("version", version), ("batch_size", batch_size)):
        if value is not None and (value != int(value) or value < 1):
            raise InputError(f"`{name}` must be a whole number of at least 1; received {value}")
    if storage not in STORAGE:
        raise InputError(f"`storage` must be one of {STORAGE}; received {storage!r}")
    if (out / str(version)).exists():
        raise InputError(f"{out / str(version)}: exists already; choose another --version")
    if out.exists() and not (out.is_dir() and (out / "models.config").is_file()):
        raise InputError(f"{out}: expected nothing or an earlier export, found something else")


def _check_errors(errors):
    wrong = {
        key: error
        for key, error in errors.items()
        if not error <= TOLERANCE and not key.endswith("same_best_image")
    }
    if wrong:
        raise RuntimeError(f"the export differs from its Keras model: {wrong}")
