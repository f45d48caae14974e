"""A model as ONNX towers in a folder: what answers need of a model, without TensorFlow or Keras."""

import contextlib
import functools
import math
import os
import threading
import weakref
from pathlib import Path

import numpy as np

from halo_search import presets
from halo_search.confidence import Probes
from halo_search.errors import InputError
from halo_search.files.written import check_facts, read_sealed
from halo_search.index.similarities import Portable
from halo_search.towers.onnx import OnnxTower, open_onnx
from halo_search.towers.piece_tokenizer import read_tokenizer
from halo_search.towers.weights import Weights

FACTS, TOKENIZER = "towers.json", "tokenizer.json"
VERSION = 2


class OnnxModel:
    """The towers that lie in a folder, and what they belong to.

    ```python
    model = halo_search.towers.packaged("toy_birds_pfe")
    model.tower("captions").of_texts(["a red bird"])["mean"].shape  # (1, 64)
    ```

    `towers.json` says of each side its file and what it reads, of the model its `kind` of
    embedding, the numbers of its similarity, and whether its tokenizer spells every word.

    Args:
        folder: with `towers.json`.
        origin: the name by which the whole model can be opened again.
        lean: whether the towers keep weights as int8, for a process that asks a few questions.

    Raises:
        InputError: if `towers.json` is absent, damaged or of another version.
    Attributes:
        similarity: the model's own, as a `Portable`.
        kind: of its embeddings, as `halo_search.embeddings.kind` calls them.
        checksum: the hash of all weights.
    """

    def __init__(self, folder: str | os.PathLike, origin: str | None = None, lean: bool = False):
        self.folder, self.origin, self.lean = Path(folder), origin, lean
        self.facts = read_sealed(self.folder / FACTS)
        if self.facts.get("version") != VERSION or not isinstance(self.facts.get("sides"), dict):
            raise InputError(f"{self.folder / FACTS}: of another version; build the index again")
        self.kind = self.facts["kind"]
        self.similarity = Portable.from_dict(self.facts["portable"])
        self.checksum = self.facts["weights_sha256"]
        self._towers, self._lock = {}, threading.Lock()
        self._files = _Files(self.folder, self.facts["files"])

    def __contains__(self, side: str) -> bool:
        return side in self.facts["sides"]

    def tower(self, side: str) -> OnnxTower:
        """The tower of a side, opened when it is first needed; a KeyError if it has none."""
        with self._lock:
            if side not in self._towers:
                self._towers[side] = self._open(side)
            return self._towers[side]

    def model_sha256(self, side: str) -> str:
        """The hash of the weights and of how pictures become squares: it identifies vectors."""
        return self.facts["sides"][side]["model_sha256"]

    @property
    def widths(self) -> set[int]:
        """The last dimensions of the parts of an embedding."""
        return {self.facts["dim"]}

    def probes(self) -> Probes | None:
        """The held-out pairs that come with the model, or None."""
        return None if self.origin is None else presets.probes_of(self.origin)

    @property
    def reads_texts(self) -> bool:
        """Whether questions may be words."""
        return self.facts["sides"].get("captions", {}).get("reads") == "texts"

    @functools.cached_property
    def known_words(self) -> frozenset[str] | None:
        """The words that the model's tokenizer knows; None if it spells every word."""
        return None if self.facts["spells"] else self.vocabulary

    @functools.cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words and pieces of the model's tokenizer."""
        return frozenset(self.tower("captions").tokenizer.get_vocab())

    def _open(self, side):
        facts = self.facts["sides"][side]
        path = self.folder / facts["file"]
        graph = self._files.contents(path)
        if "preset" in self.facts:
            read, places = Weights(self.folder.parent).read, facts["weights"]
        else:
            read = functools.partial(self._weights_beside, path)
            places = facts.get("weights") or {}
        weights = functools.partial(read, places)
        forward = _at_first_use(
            functools.partial(open_onnx, path, contents=graph, weights=weights, lean=self.lean)
        )
        tokenizer = None
        if facts["reads"] == "texts":
            tokenizer = read_tokenizer(self._files.contents(self.folder / TOKENIZER))
        tower = OnnxTower(side, facts, forward, tokenizer)
        tower.place = self.folder, self.origin
        return tower

    def _weights_beside(self, path, places):
        """Large weights, `{name: (kind, shape, offset)}`, of the file beside a graph."""
        if not places:
            return {}
        stored = self._files.contents(path.with_suffix(".data"))
        return {
            name: np.frombuffer(stored, kind, math.prod(shape), offset).reshape(shape)
            for name, (kind, shape, offset) in places.items()
        }


def _at_first_use(opening):
    """A function that calls what `opening` returns, once it is called itself: opening a tower of
    images takes longer than a question, which most processes only want to ask."""
    lock, opened = threading.Lock(), []

    def call(inputs):
        with lock:
            if not opened:
                opened.append(opening())
        return opened[0](inputs)

    return call


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
        """The checked contents of a file, as bytes, of `.data` as an array."""
        if path.name not in self._open:
            raise InputError(f"{path}: towers.json does not list it; build the index again")
        file = self._open[path.name].fileno()
        contents, at = np.empty(os.fstat(file).st_size, np.uint8), 0
        while at < len(contents):  # 2 GB at once at most; a fork shares the place in a file
            at += os.preadv(file, [contents[at:]], at) or len(contents)
        check_facts(path, self._facts[path.name], contents)
        return contents if path.suffix == ".data" else contents.tobytes()
