"""Imports Keras and its backend, first of all: without TensorFlow's notices, and with an error that
names the variable to change."""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

from halo_search.errors import InputError

# About CUDA, absl and oneDNN. C++ writes them at the import, before it reads TF_CPP_MIN_LOG_LEVEL.
_NOTICES = re.compile(
    rb"[IWE]\d{4} .*(cudart_stub|cuda_\w+|cpu_feature_guard|port|computation_placer)\.cc"
    rb"|I\d{4} |WARNING: All log messages before absl::InitializeLog"
)


@contextlib.contextmanager
def _without_notices() -> Iterator[None]:
    """Leaves notices out of what the block writes to standard error, unless the level asks for
    them; everything else is written when the block ends."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") == "0":
        yield
        return
    with tempfile.TemporaryFile() as written:
        terminal = os.dup(2)
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            written.seek(0)
            os.write(2, b"".join(line for line in written if not _NOTICES.match(line)))


try:
    with _without_notices():
        import keras

        if keras.backend.backend() == "tensorflow":
            import tensorflow  # noqa: F401
except (ImportError, ValueError) as error:
    backend = os.environ.get("KERAS_BACKEND", "none")
    # Keras' own error names no variable to change.
    if isinstance(error, ValueError) or error.name == backend:
        raise InputError(
            "KERAS_BACKEND, or keras.json, must name an installed backend, as tensorflow; "
            f"received {backend!r}: {error}"
        ) from error
    raise
