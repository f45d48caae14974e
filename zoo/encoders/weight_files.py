"""Files of weights: Keras', and safetensors, NumPy's and PyTorch's, read one array at a time."""

import argparse
import os
import pathlib
import warnings

import numpy as np

from zoo.errors import InputError, require
from zoo.files.array_files import ArrayFile, check_hdf5

SAFETENSORS, NPZ = ".safetensors", ".npz"
TORCH = (".pth", ".pt", ".bin", ".tar")  # what `torch.save` writes
SUFFIXES = (SAFETENSORS, NPZ, *TORCH)
_OLDEST_TORCH = (2, 6)  # before it `weights_only=True` could be made to run code


def open_weights(path):
    """`(stored, extra)`: the arrays of a file with one of `SUFFIXES`, and what a file of PyTorch
    holds beside them. `stored` iterates over names, `stored[name]` reads an array, and
    `stored.shape(name)` its shape alone. Raises InputError if the file cannot be read,
    holds code, or needs the torch that is not installed."""
    if path.suffix in TORCH:
        return _read_torch(path)
    try:
        return (_Mapped if path.suffix == SAFETENSORS else ArrayFile)(path), {}
    except Exception as error:  # zip, safetensors and NumPy have each their own
        raise InputError(f"{path}: cannot be read as {path.suffix}: {error}") from error


class _Mapped:
    """A safetensors file, mapped into memory."""

    def __init__(self, path):
        from safetensors import safe_open

        self._file = safe_open(path, "np")
        self._names = list(self._file.keys())

    def __iter__(self):
        return iter(self._names)

    def __getitem__(self, name):
        return self._file.get_tensor(name)

    def shape(self, name):
        return self._file.get_slice(name).get_shape()


class _Tensors:
    """Tensors of PyTorch by name."""

    def __init__(self, tensors):
        self._tensors = tensors

    def __iter__(self):
        return iter(self._tensors)

    def __getitem__(self, name):
        return self._tensors[name].detach().cpu().float().numpy()

    def shape(self, name):
        return self._tensors[name].shape


def load_weights(model, path):
    """Loads a `.weights.h5` file (`model.save_weights`) or a legacy `.h5` one into a built model.
    Raises InputError if there is no such file, its name ends otherwise, it is not HDF5, or its
    weights are not those of `model`."""
    path = pathlib.Path(os.fspath(path)).expanduser()
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected the weights of {model.name!r}")
    if path.suffix != ".h5":
        raise InputError(
            f"{path}: expected a .weights.h5 or .h5 file with the weights of {model.name!r}"
        )
    try:
        with warnings.catch_warnings():
            # Keras only warns where the file lacks some weights, and leaves them random.
            warnings.filterwarnings("error", message="Skipping")
            check_hdf5(path, path.stat().st_size)
            model.load_weights(path)
    except Exception as error:  # h5py and Keras raise a dozen kinds, depending on the damage
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"{path}: expected the weights of {model.name!r} "
            f"({model.count_params():,} parameters); {reason[0]}"
        ) from error


def _read_torch(path):
    """The tensors of a file of PyTorch by name, and the plain values beside them."""
    torch = require("torch", extra="torch")
    found = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if found < _OLDEST_TORCH:
        raise InputError(
            f"{path}: needs torch 2.6 or newer, whose `weights_only=True` runs no code; found "
            f"{torch.__version__}"
        )
    # Values only, beside the weights: a command line's options, and NumPy's scalars, which
    # NumPy 1 has under another name.
    scalar = np.float64(0).__reduce__()[0]
    plain = [argparse.Namespace, np.dtype, np.dtypes.Float64DType, np.dtypes.Float32DType, scalar]
    plain += [(scalar, "numpy.core.multiarray.scalar")]
    try:
        with torch.serialization.safe_globals(plain):
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle, zip and torch
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(
            f"{path}: torch cannot read it as weights alone, and code in it is not run: {reason}"
        ) from error
    if not isinstance(state, dict):
        raise InputError(f"{path}: expected a dict of arrays; received {type(state).__name__}")
    weights = next((state[key] for key in ("model", "state_dict") if key in state), state)
    if isinstance(weights, (list, tuple)):
        weights = {
            f"{place}.{name}": value
            for place, part in enumerate(weights)
            for name, value in part.items()
        }
    tensors = {name: value for name, value in weights.items() if torch.is_tensor(value)}
    for name, value in dict(state.get("criterion") or {}).items():
        if torch.is_tensor(value):
            tensors[f"criterion.{name}"] = value
    beside = {key: value for key, value in state.items() if not torch.is_tensor(value)}
    return _Tensors(tensors), beside
