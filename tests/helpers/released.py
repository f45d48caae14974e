"""Published checkpoints by the rule of golden/released: the same weights on any machine."""

import json
import pathlib
import zlib

import numpy as np
import pytest
from safetensors.numpy import save_file

TESTS = pathlib.Path(__file__).parent.parent
OWN = TESTS / "golden" / "released"
SHARED = TESTS.parent.parent / "shared" / "golden" / "released"


def weight(name, shape):
    """The array of a name and a shape in PyTorch's layout."""
    x = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape, dtype=np.float32)
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    if name.endswith("running_var"):
        return np.float32(1) + np.float32(0.1) * np.abs(x)
    if name.endswith("running_mean"):
        return np.float32(0.1) * x
    if len(shape) == 0:
        return np.asarray(0.5 + 0.1 * x, np.float32)
    if len(shape) == 1:
        return (1 + 0.1 * x if name.endswith("weight") else 0.02 * x).astype(np.float32)
    return (x / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def described(name):
    """`about` and `arrays` of a checkpoint, and the official code's inputs and outputs.

    Skips where the file is beside the checkout alone, and is not there.
    """
    folder = OWN if (OWN / f"{name}.json").is_file() else SHARED
    if not (folder / f"{name}.json").is_file():
        pytest.skip("the official outputs at full size (../shared/golden) are not beside this one")
    stored = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    outputs = {}
    if (folder / f"{name}.npz").is_file():
        with np.load(folder / f"{name}.npz") as arrays:
            outputs = dict(arrays)
    return stored["about"], stored["arrays"], outputs


def weights(shapes):
    return {name: weight(name, tuple(shape)) for name, shape in shapes.items()}


def write(folder, arrays, config=None):
    """A folder as on a hub: `model.safetensors`, and `config.json` if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: np.asarray(one) for name, one in arrays.items()}, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def pixels(size):
    """The pictures that the official codes were asked, before their normalisation."""
    return np.random.default_rng(1).integers(0, 256, (2, size, size, 3), dtype=np.uint8)


def check_gaussian(encoder, inputs, mean, log_variance):
    """Holds a tower to the official outputs: means to 1e-5, log variances relative to 1e-4."""
    found = encoder.predict(inputs, verbose=0)
    np.testing.assert_allclose(found["mean"], mean, atol=1e-5, rtol=0)
    # Numbers near 0 have few digits of their own.
    near_zero = 1e-6 * np.abs(log_variance).max()
    np.testing.assert_allclose(found["log_variance"], log_variance, rtol=1e-4, atol=near_zero)
