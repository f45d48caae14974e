"""One tower as an ONNX file: embeds by ONNX Runtime, without TensorFlow or Keras."""

import ctypes
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from halo_search.errors import InputError
from halo_search.towers.tower import Tower

PICTURES_AT_ONCE = 4  # more take more memory, and no less time


class OnnxTower(Tower):
    """A `Tower` that ONNX Runtime computes; it agrees with the Keras tower to 1e-4.

    Args:
        side: `"images"` or `"captions"`.
        facts: of `towers.json`: what the side reads, and how pictures are shown to it.
        forward: from a dict of inputs to a dict of outputs, see `open_onnx`.
        tokenizer: of a side that reads texts.
    """

    def __init__(self, side: str, facts: Mapping[str, Any], forward: Callable, tokenizer: Any):
        self.side, self.reads, self.measure = side, facts["reads"], facts.get("measure")
        self.dim = facts.get("dim")
        self.image_size = facts.get("size")
        self.resizing = facts.get("mode", "crop"), facts.get("crop_fraction", 1.0)
        self.batch_size = PICTURES_AT_ONCE
        self.model_sha256 = facts.get("model_sha256")
        self.tokenizer = tokenizer
        self.place = None  # the folder and the origin of its model, by which it is pickled
        self._compute = forward

    def __reduce__(self):
        return _opened_again, (*self.place, self.side, self.batch_size)

    def forward(self, batch: np.ndarray) -> dict[str, np.ndarray]:
        kind = np.int32 if self.reads == "texts" else np.float32
        return self._compute({self.side: np.asarray(batch, kind)})

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        rows = self.tokenizer.encode_batch(list(texts))
        return np.array([row.ids for row in rows], np.int32)


def _opened_again(folder, origin, side, batch_size):
    from halo_search.towers.onnx_model import OnnxModel  # which is made of towers

    tower = OnnxModel(folder, origin).tower(side)
    tower.batch_size = batch_size
    return tower


def open_onnx(
    path: str | os.PathLike,
    threads: int = 0,
    contents: bytes | None = None,
    weights: Callable[[], Mapping[str, np.ndarray]] | None = None,
    lean: bool = False,
) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """The function from a dict of inputs to one of outputs that a file computes.

    Args:
        path: the file, which errors name.
        threads: that one call uses; 0: those of `OMP_NUM_THREADS`, which Ray sets for its workers,
            else as many as there are cores.
        contents: of the file, where they have been read already.
        weights: reads the initializers that lie outside of the graph, by name.
        lean: whether int8 weights stay int8 in memory, and become floats at each run.

    Raises:
        InputError: if the file cannot be read.
    """
    path, held = Path(path), {}
    given = path, threads, contents, weights, lean

    def forward(inputs):
        if held.get("process") != os.getpid():
            # Its threads are not in this process, so its end would wait for ever: it has none.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held["session"]))
            held.update(process=os.getpid(), session=_session(*given))
        session = held["session"]
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs), strict=True))

    held.update(process=os.getpid(), session=_session(*given))
    # So that its threads end before the interpreter is taken apart, in which nobody joins them.
    weakref.finalize(forward, held.clear)
    return forward


def _threads_of_environment():
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdecimal() else 0


def _session(path, threads, contents, weights, lean):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or _threads_of_environment()
    # Threads that wait by spinning cost a server of single questions more than the tower.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # what is wrong is raised, too
    # int8 weights become floats once, when the graph is opened; else at each run, which takes a
    # third of the memory, and three times as long.
    options.add_session_config_entry("session.disable_quant_qdq", "0" if lean else "1")
    if lean:  # a higher level would multiply in int8, by rounded activations
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_cpu_mem_arena = not lean
    arrays = {} if weights is None else weights()
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
    if values:
        options.add_external_initializers(list(arrays), values)  # which are copied
    try:
        graph = str(path) if contents is None else contents
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        _return_memory()  # of what making the session took, a third of the peak
        return session
    except Exception as error:  # its classes share no base of their own
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from error


def _return_memory():
    """Gives freed memory back to the system, where the C library is one that keeps it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
