"""Weights from a local file, with errors that say which file and what was expected."""

import os
import pathlib
import warnings

from zoo.errors import InputError
from zoo.files.array_files import check_hdf5


def load_weights(model, path):
    """Loads a Keras weights file into `model`.

    Args:
        model: a built keras.Model.
        path: a `.weights.h5` file (`model.save_weights`) or a legacy `.h5` one.

    Raises:
        InputError: if there is no such file, its name ends otherwise, it is not HDF5, or its
            weights are not those of `model`.
    """
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
