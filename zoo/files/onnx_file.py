"""An ONNX file as a function of arrays."""

import os
from collections.abc import Callable

import numpy as np

from zoo.errors import InputError, require


def open_onnx(
    path: str | os.PathLike, threads: int = 0
) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """The function from a dict of inputs to a dict of outputs that a file computes; 0 threads for
    as many as there are cores. Raises InputError if it cannot be read, or onnxruntime is not
    installed."""
    onnxruntime = require("onnxruntime", extra="search")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait by spinning cost a server of single questions more than the tower.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # its notes are of no use to who asks
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its classes share no base of their own
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from error
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))
