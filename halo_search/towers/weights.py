"""The weights of a packaged preset as arrays: Keras' HDF5 file, in which large ones are int8."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from halo_search.errors import InputError

WEIGHTS_FILE = "model.weights.h5"
SCALES = "halo_scales"  # the group that says what the steps of int8 are


LEVELS, STEPS = "@levels", "@steps"  # behind the path of an int8 array: either factor of it


class Weights:
    """The arrays in a preset's `model.weights.h5`, by their paths in the file.

    ```python
    Weights(halo_search.presets.folder_of("toy_birds_pfe")).paths()
    ```
    """

    def __init__(self, folder: Path):
        self.path = folder / WEIGHTS_FILE

    def _opened(self):
        import h5py  # here: its import starts a process, `uname -p`

        return h5py.File(self.path, "r")

    def paths(self) -> list[str]:
        """The paths of all arrays."""
        paths = []

        def collect(name, item):
            if hasattr(item, "dtype") and name.split("/")[0] != SCALES:
                paths.append(name)

        with self._opened() as file:
            file.visititems(collect)
        return paths

    def is_int8(self, path: str) -> bool:
        """Whether an array is kept as int8 times steps."""
        with self._opened() as file:
            return file[path].dtype == np.int8

    def read(self, places: Mapping[str, str]) -> dict[str, np.ndarray]:
        """`{name: array}` of `{name: path}`, contiguous, floats as float32. A path with `LEVELS` or
        `STEPS` behind it returns that factor: levels `(rows, columns)`, and steps `(columns,)` or,
        for a table of vectors, `(rows, 1)`. Raises InputError if the file is damaged."""
        try:
            with self._opened() as file:
                return {name: _array(file, path) for name, path in places.items()}
        except (OSError, KeyError) as error:
            reason = f"{self.path}: damaged: {error}; install the package again"
            raise InputError(reason) from error


def _array(file, path):
    """An array as Keras has it: int8 times its steps, float16 as float32; or one factor."""
    path, _, factor = path.partition("@")
    dataset = file[path]
    if dataset.dtype != np.int8:
        values = dataset[()]
        return values.astype(np.float32) if values.dtype == np.float16 else values
    steps = file[SCALES][path][()].astype(np.float32)
    is_of_rows = dataset.ndim == 2 and steps.shape[1] == 1  # of a table of vectors
    if factor == STEPS[1:]:
        return steps if is_of_rows else steps.reshape(-1)
    levels = dataset[()]
    if not factor:
        return levels.astype(np.float32) * steps
    return levels if is_of_rows else levels.reshape(-1, steps.size)
