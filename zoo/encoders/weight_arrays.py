"""Arrays of pretrained weights by the names that other frameworks gave them."""

import os
import pathlib

import numpy as np

from zoo.errors import InputError

SAFETENSORS, NPZ = ".safetensors", ".npz"


class WeightArrays:
    """The arrays of a weights file by name, as float32, with errors that name the file.

    Args:
        path: a `.safetensors` or `.npz` file.
        expected: what the file should hold, for the error where there is none.

    Raises:
        InputError: if there is no such file, or it cannot be read.
    """

    def __init__(self, path, expected):
        self.path = pathlib.Path(os.fspath(path)).expanduser()
        if not self.path.is_file():
            raise InputError(f"{self.path}: no such file; expected {expected}")
        suffix = self.path.suffix
        if suffix not in (SAFETENSORS, NPZ):
            raise InputError(f"{self.path}: expected a {SAFETENSORS} or {NPZ} file with {expected}")
        try:
            if suffix == SAFETENSORS:
                from safetensors.numpy import load_file

                self._arrays = load_file(self.path)
            else:
                with np.load(self.path, allow_pickle=False) as stored:
                    self._arrays = dict(stored)
        except Exception as error:  # zip, safetensors and NumPy have each their own
            raise InputError(f"{self.path}: cannot be read as {suffix}: {error}") from error

    def __iter__(self):
        return iter(self._arrays)

    def has(self, prefix):
        """Whether there is an array whose name starts so."""
        return any(name.startswith(prefix) for name in self._arrays)

    def get(self, name):
        """An array by name.

        Raises:
            InputError: if it is missing or not finite.
        """
        if name not in self._arrays:
            raise InputError(f"{self.path}: expected an array {name!r}; it is missing")
        array = np.asarray(self._arrays[name], np.float32)
        if not np.isfinite(array).all():
            raise InputError(f"{self.path}: {name!r} has NaN or infinite values")
        return array

    def assign(self, variable, name, array):
        """Gives a variable an array in Keras' layout, `name` being where it comes from.

        Raises:
            InputError: if the shapes differ.
        """
        if tuple(variable.shape) != array.shape:
            raise InputError(
                f"{self.path}: {name!r} should have the shape {tuple(variable.shape)} in Keras' "
                f"layout; it has {array.shape}"
            )
        variable.assign(array)
