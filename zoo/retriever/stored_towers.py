"""The towers of a model as ONNX files beside an index: questions without TensorFlow or Keras."""

import contextlib
import ctypes
import functools
import importlib.util
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo.embeddings.arrays import gaussian_uncertainty, joined
from zoo.errors import InputError, require
from zoo.files.decoding import decoded, fit
from zoo.files.folders import TOWERS
from zoo.files.piece_tokenizer import read_tokenizer
from zoo.files.written import check_facts, read_sealed

FACTS, TOKENIZER = "towers.json", "tokenizer.json"
VERSION = 1
ENGINE = ("onnxruntime", "tokenizers")  # packages of the extra "search"
_MANY, _PICTURES = 256, 8  # texts and pictures at once


class StoredTowers:
    """What `write_towers` wrote into `folder`; `facts` say of each side its `file` and what it
    reads, `spells`, whether the tokenizer spells every word, and the `similarity`'s identity."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self.facts = read_sealed(self.folder / FACTS)
        if self.facts.get("version") != VERSION or not isinstance(self.facts.get("sides"), dict):
            raise InputError(f"{self.folder / FACTS}: of another version; build the index again")
        self._towers, self._lock = {}, threading.Lock()
        self._files = _Files(self.folder, self.facts["files"])

    @classmethod
    def of(cls, out: Path, setup: dict[str, Any]) -> "StoredTowers | None":
        """The towers of an index's folder and setup; None where it has none or their engine is not
        installed. An InputError if they cannot be read."""
        name = setup.get("towers")
        if not isinstance(name, str) or not name.startswith(TOWERS):
            return None
        return cls(out / name) if all(map(importlib.util.find_spec, ENGINE)) else None

    def __contains__(self, side: str) -> bool:
        return side in self.facts["sides"]

    def __getitem__(self, side: str) -> "StoredTower":
        with self._lock:
            if side not in self._towers:
                facts = self.facts["sides"][side]
                self._towers[side] = StoredTower(self.folder, side, facts, self._files.contents)
            return self._towers[side]

    @functools.cached_property
    def known_words(self) -> frozenset[str] | None:
        """The words that the model's tokenizer tells apart; None where it spells every word."""
        return None if self.facts["spells"] else self.vocabulary

    @functools.cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words and pieces of the model's tokenizer."""
        return frozenset(self["captions"].tokenizer.get_vocab())


class _Files:
    """The files of a folder as they are now: what is open stays, whatever becomes of the folder."""

    def __init__(self, folder, facts):
        self._facts, self._open = facts, {}
        with contextlib.ExitStack() as stack:
            for name in facts:
                path = folder / Path(name).name
                try:
                    self._open[path.name] = stack.enter_context(open(path, "rb"))
                except OSError as error:
                    raise InputError(f"{path}: {error.strerror}") from error
            weakref.finalize(self, stack.pop_all().close)

    def contents(self, path):
        if path.name not in self._open:
            return None
        file = self._open[path.name].fileno()
        contents, at = np.empty(os.fstat(file).st_size, np.uint8), 0
        while at < len(contents):  # 2 GB at once at most; a fork shares the place in a file
            at += os.preadv(file, [contents[at:]], at) or len(contents)
        check_facts(path, self._facts[path.name], contents)
        return contents if path.suffix == ".data" else contents.tobytes()


class StoredTower:
    """One side: encodes texts or pictures as `zoo.Tower` does, to 1e-4. `reads` is `"texts"` or
    `"pictures"`, `measure` that of its uncertainty."""

    def __init__(self, folder: Path, side: str, facts: dict[str, Any], read: Callable):
        self.side, self.reads, self._facts = side, facts["reads"], facts
        self.measure = facts.get("measure")
        self._forward = open_onnx(folder / facts["file"], 0, read, facts.get("weights"))
        self.tokenizer = None
        if self.reads == "texts":
            self.tokenizer = read_tokenizer(read(folder / TOKENIZER))

    def of_texts(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The embedding of strings; an InputError of a lone surrogate, or a side of pictures."""
        self._expect("texts")
        texts = list(texts)
        for text in texts:
            if any("\ud800" <= one <= "\udfff" for one in text):
                raise InputError(f"a text must be Unicode; received a lone surrogate in {text!r}")
        return joined(
            [
                self._forward({self.side: self._ids(texts[start : start + _MANY])})
                for start in range(0, len(texts), _MANY)
            ]
        )

    def of_files(self, files: Sequence[Any]) -> dict[str, np.ndarray]:
        """The embedding of pictures: paths, the bytes of files, Pillow images or arrays; an
        InputError if one cannot be read, or of a side of texts."""
        self._expect("pictures")
        parts = []
        for row, file in enumerate(files):
            try:
                parts.append(self.of_arrays(self.fitted(file)[None]))
            except InputError as error:
                if isinstance(file, (str, os.PathLike)):
                    raise
                raise InputError(f"item {row}: {error}") from error
        return joined(parts)

    def of_arrays(self, arrays: np.ndarray) -> dict[str, np.ndarray]:
        """The embedding of pictures as `fitted` returns them, `(N, size, size, 3)`."""
        parts = [arrays[n : n + _PICTURES] for n in range(0, len(arrays), _PICTURES)]
        return joined([self._forward({self.side: part.astype(np.float32)}) for part in parts])

    def fitted(self, picture: Any) -> np.ndarray:
        """A picture as the encoder is shown it, uint8 `(size, size, 3)`; raises as `of_files`."""
        self._expect("pictures")
        shown = self._facts["size"], self._facts["mode"], self._facts["crop_fraction"]
        return fit(decoded(picture), *shown)

    def uncertainty(self, embedding: dict[str, np.ndarray]) -> np.ndarray | None:
        """`(N,)` by the model's own measure, or None where the embedding has none."""
        if self.measure is None or "log_variance" not in embedding:
            return None
        return gaussian_uncertainty(embedding, self.measure)

    def _expect(self, wanted):
        if self.reads != wanted:
            raise InputError(f"the model reads {self.reads} for {self.side}, not {wanted}")

    def _ids(self, texts):
        return np.array([one.ids for one in self.tokenizer.encode_batch(texts)], np.int32)


def open_onnx(
    path: str | os.PathLike,
    threads: int = 0,
    read: Callable[[Path], bytes | None] | None = None,
    weights: dict[str, tuple[str, list[int], int]] | None = None,
) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """The function from a dict of inputs to one of outputs that a file computes; an InputError if
    it cannot be read. `read` gives contents of files, `weights` are those of `weights_beside`."""
    path, held = Path(path), {}
    given = path, threads, read, weights

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


def _session(path, threads, read, weights):
    onnxruntime = require("onnxruntime", extra="search")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait by spinning cost a server of single questions more than the tower.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # what is wrong is raised, too
    graph, kept = str(path) if read is None else read(path), []
    if weights:
        stored = read(path.with_suffix(".data"))
        kept = [_shared(onnxruntime, stored, *one) for one in weights.values()]
        options.add_external_initializers(list(weights), kept)
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        session.weights = kept  # which it reads where they are
        return session
    except Exception as error:  # its classes share no base of their own
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from error


def _shared(onnxruntime, stored, kind, shape, offset):
    values = np.frombuffer(stored, kind, math.prod(shape), offset).reshape(shape)
    return onnxruntime.OrtValue.ortvalue_from_numpy(values)
