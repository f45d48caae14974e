"""Arrays of pretrained weights by the names that other frameworks gave them."""

import argparse
import os
import pathlib
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from halo_search.errors import InputError, require
from halo_search.files.array_files import check_hdf5, read_arrays

SAFETENSORS, NPZ = ".safetensors", ".npz"
TORCH = (".pth", ".pt", ".bin", ".tar")  # what `torch.save` writes
SUFFIXES = (SAFETENSORS, NPZ, *TORCH)
_OLDEST_TORCH = (2, 6)  # before it `weights_only=True` could be made to run code
# Of a state that is a list of state dicts, as VSE++, SGRAF and VSE∞ save theirs.
PARTS = ("img_enc.", "txt_enc.", "sim_enc.")
# Counters and masks that a state dict holds beside its weights.
COUNTERS = ("num_batches_tracked", "position_ids", "attn_mask")


def open_weights(path):
    """`(stored, extra)`: the arrays of a weights file by name, with `stored.shape(name)`, and what
    PyTorch's files hold beside. Raises InputError if it cannot be read or holds code."""
    if path.suffix in TORCH:
        return _read_torch(path)
    try:
        return (_Mapped(path) if path.suffix == SAFETENSORS else _Loaded(read_arrays(path))), {}
    except InputError:
        raise
    except Exception as error:  # safetensors has its own
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


class _Loaded(dict):
    """The arrays of an `.npz` file by name."""

    def shape(self, name):
        return self[name].shape


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
    """Loads `.weights.h5`, or a legacy `.h5`, into a built model. Raises InputError if it is no
    such file, or its weights are not those of `model`."""
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
            check_hdf5(path)
            model.load_weights(path)
    except Exception as error:  # h5py and Keras raise a dozen kinds, depending on the damage
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"{path}: expected the weights of {model.name!r} "
            f"({model.count_params():,} parameters); {reason[0]}"
        ) from error


class WeightArrays:
    """Arrays of a weights file by name, float32, with errors that name the file; PyTorch's are read
    by `weights_only=True`, so no code runs. `prefix` begins the names of this network."""

    def __init__(self, path: str | os.PathLike, expected: str, prefix: str = ""):
        self.path = pathlib.Path(os.fspath(path)).expanduser()
        self.prefix = prefix
        if not self.path.is_file():
            raise InputError(f"{self.path}: no such file; expected {expected}")
        if self.path.suffix not in SUFFIXES:
            raise InputError(
                f"{self.path}: expected a {SAFETENSORS} or {NPZ} file with {expected}, or a file "
                f"of PyTorch ({', '.join(TORCH)})"
            )
        self._stored, self.extra = open_weights(self.path)
        self._names = {_plain(name): name for name in self._stored}

    def under(self, prefix: str) -> "WeightArrays":
        """The arrays whose names start with `prefix`, by the rest of their names."""
        part = object.__new__(WeightArrays)
        part.__dict__.update(self.__dict__, prefix=self.prefix + prefix)
        return part

    def __iter__(self) -> Iterator[str]:
        start = len(self.prefix)
        return (name[start:] for name in self._names if name.startswith(self.prefix))

    def has(self, prefix: str) -> bool:
        """Whether there is an array whose name starts so."""
        return any(name.startswith(self.prefix + prefix) for name in self._names)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, without reading it. Raises InputError if it is missing."""
        return tuple(self._stored.shape(self._stored_name(name)))

    def count(self, pattern: str) -> int:
        """How many values the number has in names such as `"resblocks.{}."`."""
        number = re.compile(re.escape(self.prefix + pattern).replace(r"\{\}", r"(\d+)"))
        matches = (number.match(name) for name in self._names)
        return len({match.group(1) for match in matches if match})

    def get(self, name: str) -> np.ndarray:
        """An array by name, float32. Raises InputError if it is missing, damaged, no numbers, or
        not finite."""
        stored = self._stored_name(name)
        try:
            array = np.asarray(self._stored[stored]).astype(np.float32, copy=False)
        except Exception as error:  # of zip, NumPy and safetensors
            raise InputError(f"{self.path}: {stored!r} cannot be read: {error}") from error
        if not np.isfinite(array).all():
            raise InputError(f"{self.path}: {stored!r} has NaN or infinite values")
        return array

    def scalar(self, name: str) -> float:
        """An array of one number. Raises InputError if it is missing, not finite, or has more
        numbers."""
        array = self.get(name).ravel()
        if len(array) != 1:
            raise InputError(f"{self.path}: {name!r} should be one number; it has {len(array)}")
        return float(array[0])

    def assign(self, variable: Any, name: str, array: np.ndarray) -> None:
        """Gives a variable an array in Keras' layout, `name` being where it comes from. Raises
        InputError if the shapes differ."""
        if tuple(variable.shape) != array.shape:
            raise InputError(
                f"{self.path}: {self.prefix + name!r} should have the shape "
                f"{tuple(variable.shape)} in Keras' layout; it has {array.shape}"
            )
        variable.assign(array)

    def require(self, names: Iterable[str], network: str) -> None:
        """Checks that arrays are there, all at once. Raises InputError if some are missing; it says
        how many, and the first three."""
        missing = [name for name in names if self.prefix + name not in self._names]
        if missing:
            raise InputError(
                f"{self.path}: {_counted(missing)} of {network} "
                f"{'is' if len(missing) == 1 else 'are'} missing: {_first(missing)}"
            )

    def check_all_used(
        self, network: str, entries: Iterable[Any], ignored: tuple[str, ...] = COUNTERS
    ) -> None:
        """Raises InputError if arrays of the file are in no entry's `names`, and not `ignored` by
        the start or end of their name; it says how many, and the first three."""
        used = {name for entry in entries for name in entry.names}
        unused = [
            name
            for name in self
            if name not in used and not name.endswith(ignored) and not name.startswith(ignored)
        ]
        if unused:
            raise InputError(
                f"{self.path}: {_counted(unused)} {'has' if len(unused) == 1 else 'have'} no place "
                f"in {network}: {_first(unused)}"
            )

    def _stored_name(self, name):
        """The name in the file; an InputError if the array is missing."""
        if self.prefix + name not in self._names:
            raise InputError(
                f"{self.path}: expected an array {self.prefix + name!r}; it is missing"
            )
        return self._names[self.prefix + name]


def _read_torch(path):
    """The tensors of a file of PyTorch by name, and the plain values beside them."""
    torch = require("torch", extra="torch")
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST_TORCH:
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


def _counted(names):
    return "1 array" if len(names) == 1 else f"{len(names)} arrays"


def _first(names):
    return ", ".join(map(repr, names[:3])) + (" …" if len(names) > 3 else "")


def _plain(name):
    """A name without what wrappers put before it: `module.` of data-parallel training."""
    name = name.removeprefix("module.")
    number, _, rest = name.partition(".")
    if number in ("0", "1", "2"):  # a list's place, where a list of state dicts was flattened
        return PARTS[int(number)] + rest.removeprefix("module.")
    return name
