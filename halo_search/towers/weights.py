"""The weights of a packaged preset as arrays: Keras' HDF5 file, in which large ones are int8."""

from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np

from halo_search.errors import InputError

WEIGHTS_FILE = "model.weights.h5"
SCALES = "halo_scales"  # the group that says what the steps of int8 are


class Weights:
    """The arrays in a preset's `model.weights.h5`, by their paths in the file.

    ```python
    Weights(halo_search.presets.folder_of("toy_birds_pfe")).paths()
    ```
    """

    def __init__(self, folder: Path):
        self.path = folder / WEIGHTS_FILE

    def paths(self) -> list[str]:
        """The paths of all arrays."""
        paths = []

        def collect(name, item):
            if isinstance(item, h5py.Dataset) and name.split("/")[0] != SCALES:
                paths.append(name)

        with h5py.File(self.path, "r") as file:
            file.visititems(collect)
        return paths

    def read(self, places: Mapping[str, str]) -> dict[str, np.ndarray]:
        """`{name: array}` of `{name: path}`, contiguous, floats as float32. Raises InputError if
        the file is damaged, or lacks one."""
        try:
            with h5py.File(self.path, "r") as file:
                scales = file.get(SCALES, {})
                return {name: _array(file[path], scales, path) for name, path in places.items()}
        except (OSError, KeyError) as error:
            raise InputError(f"{self.path}: damaged: {error}; install the package again") from error


def _array(dataset, scales, path):
    """A dataset as Keras has it: int8 times its steps, float16 as float32."""
    values = dataset[()]
    if values.dtype == np.int8:
        return values.astype(np.float32) * scales[path][()].astype(np.float32)
    return values.astype(np.float32) if values.dtype == np.float16 else values
