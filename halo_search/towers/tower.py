"""One side of a model: files, texts, arrays or vectors to embeddings, whatever computes them."""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from halo_search.embeddings import Embedding, has_uncertainty
from halo_search.embeddings.arrays import joined, uncertainty_of
from halo_search.errors import InputError
from halo_search.files.decoding import decoded, fit
from halo_search.files.folders import printable

SIDES = ("images", "captions")
PICTURES_AT_ONCE = 16
SMALL_AT_ONCE = {"texts": 256, "ids": 256, "vectors": 4096}  # they are small


class Tower(ABC):
    """Encodes one side of a model, batch by batch.

    ```python
    tower = halo_search.open_tower("toy_birds_pfe", "captions")
    tower.of_texts(["a red bird", "a blue bird"])["mean"].shape  # (2, 64)
    ```

    Every method returns an embedding: a dict of arrays, floats as float32. A subclass states the
    attributes and has `forward`, and `tokenize` where it reads texts.

    Attributes:
        side: `"images"` or `"captions"`.
        reads: what the side takes: `"pictures"`, `"texts"`, `"vectors"`, `"features"` of pictures
            or `"ids"` of words.
        dim: channels of stored vectors, or None.
        image_size: side of the square that pictures are resized to, in pixels, or None.
        resizing: `(mode, crop_fraction)`, how pictures become squares, see
            `halo_search.files.decoding.fit`.
        measure: of the side's uncertainty, see `zoo.embeddings.uncertainty`; None of points.
        batch_size: pictures at once; texts and vectors are small and come by the hundred.
    """

    side: str
    reads: str
    dim: int | None = None
    image_size: int | None = None
    resizing: tuple[str, float] = ("crop", 1.0)
    measure: str | None = None
    batch_size: int = PICTURES_AT_ONCE

    @abstractmethod
    def forward(self, batch: Any) -> Embedding:
        """The embedding of one batch of what the encoder takes: pixels `(B, size, size, 3)` of
        0 … 255, token ids `(B, length)`, features or vectors `(B, dim)`."""

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Token ids `(B, length)` of strings."""
        raise NotImplementedError

    def of_files(
        self,
        files: Sequence[Any],
        names: Sequence[str] | None = None,
        progress: Any = False,
        rejected: MutableMapping[int, str] | None = None,
    ) -> Embedding:
        """The embedding of pictures, decoded side by side while the network encodes others. Raises
        InputError if one cannot be read, by its name; or if the model reads no pictures.

        Two batches of pixels are in memory at most, however many files there are.

        Args:
            files: what `halo_search.files.decoding.decoded` takes: paths, the bytes of files,
                Pillow images, arrays of any size.
            names: what to call each in an error; default: its path, or its row.
            progress: True draws a bar; a function is called with how many more are done.
            rejected: receives the row and the reason of each that cannot be read, which is then
                left out. None: the first one is an error.
        """
        self.expect("pictures")
        files = list(files)

        def reject(row, reason):
            is_path = isinstance(files[row], (str, os.PathLike))
            name = str(files[row]) if is_path else f"item {row}"
            name = name if names is None else names[row]
            reason = str(reason).removeprefix(f"{files[row]}: ")
            reason = reason.removeprefix(f"{printable(str(files[row]))}: ")
            if rejected is None:
                raise InputError(f"{printable(name)}: {reason}")
            rejected[row] = reason

        batches = decoded_batches(self.fitted, files, self.batch_size, reject)
        return self._encoded(batches, len(files), progress)

    def of_texts(self, texts: Sequence[str], progress: Any = False) -> Embedding:
        """The embedding of strings. Raises InputError if the model has no tokenizer, or a text
        holds a lone surrogate."""
        self.expect("texts")
        texts = [texts] if isinstance(texts, str) else list(texts)
        for text in texts:
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(f"a text must be Unicode; received a lone surrogate in {text!r}")
        batches = _slices(texts, self._at_once("texts"))
        batches = ((self.tokenize(batch), count) for batch, count in batches)
        return self._encoded(batches, len(texts), progress)

    def of_vectors(self, vectors: Any, progress: Any = False) -> Embedding:
        """The embedding of stored vectors `(N, dim)`. Raises InputError if the model reads none, or
        of another dim."""
        self.expect("vectors")
        if np.ndim(vectors) != 2 or vectors.shape[1] != self.dim:
            raise InputError(
                f"expected vectors of {self.dim} channels, which the model takes for {self.side}; "
                f"received shape {tuple(np.shape(vectors))}"
            )
        batches = _slices(vectors, self._at_once("vectors"))
        return self._encoded(batches, len(vectors), progress)

    def of_arrays(self, arrays: Any, batch_size: int | None = None, progress: Any = False) -> Any:
        """The embedding of what the encoder itself takes.

        Args:
            arrays: pictures `(N, size, size, 3)` of 0 … 255, features, token ids or vectors; or
                batches of that, such as a `tf.data.Dataset`; at least one item, else a ValueError.
            batch_size: of an array; default: by its kind.
            progress: as of `of_files`.
        """
        if hasattr(arrays, "shape"):
            total, size = len(arrays), batch_size or self._at_once(self.reads)
            batches = _slices(arrays, size)
        else:
            total, batches = None, ((batch, len(batch)) for batch in arrays)
        return self._encoded(batches, total, progress)

    def fitted(self, picture: Any) -> np.ndarray:
        """A picture, as one of `of_files`, as the encoder is shown it, uint8 `(size, size, 3)`.
        Raises InputError if it cannot be read, or the model reads no pictures."""
        self.expect("pictures")
        return fit(decoded(picture), self.image_size, *self.resizing)

    def uncertainty(self, embedding: Embedding) -> np.ndarray | None:
        """`(N,)` by the model's own measure, or None where the embedding has none."""
        if self.measure is None or not has_uncertainty(embedding):
            return None
        return uncertainty_of(embedding, self.measure)

    def expect(self, wanted: str) -> None:
        """Raises InputError if the side reads something else than `wanted`, a value of `reads`."""
        if self.reads == wanted:
            return
        if wanted == "texts" and self.side == "captions":
            raise InputError("the model has no tokenizer, so it cannot be asked in words")
        raise InputError(f"the model reads {self._reads_in_words()} for {self.side}, not {wanted}")

    def _reads_in_words(self):
        return self.reads

    def _at_once(self, kind):
        """How many items of a kind one batch has."""
        return max(SMALL_AT_ONCE.get(kind, self.batch_size), self.batch_size)

    def _encoded(self, batches: Iterable[tuple[Any, int]], total, progress):
        """The embeddings of all batches, joined; each comes with the count of items behind it."""
        if total == 0:
            raise ValueError("there must be at least one item to encode; received none")
        parts = []
        with _advancing(progress, total) as advance:
            for batch, count in batches:
                if len(batch):
                    parts.append(self.forward(batch))
                advance(count)
        return self._joined(parts)

    def _joined(self, parts):
        return joined(parts)


def _slices(items: Any, size: int) -> Iterator[tuple[Any, int]]:
    """`(items, how many)`, at most `size` at once."""
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        yield batch, len(batch)


def decoded_batches(
    decode: Callable[[Any], Any],
    files: Sequence[Any],
    size: int,
    reject: Callable[[int, InputError], None],
) -> Iterator[tuple[Any, int]]:
    """`(pixels, how many files)` of batches of `size` files; the next batch is decoded while the
    last one is encoded. `reject(row, error)` hears of files that cannot be read."""

    def attempt(file):
        try:
            return decode(file)
        except InputError as error:
            return error

    starts = range(0, len(files), size)
    if len(files) == 1:
        batches, pool = iter([[attempt(files[0])]]), None
    else:
        pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1))
        batches = (pool.map(attempt, files[start : start + size]) for start in starts)
    try:
        waiting = next(batches, ())
        for start in starts:
            results = list(waiting)
            waiting = next(batches, None)  # submitted before this batch is encoded
            readable = []
            for row, result in enumerate(results, start):
                if isinstance(result, InputError):
                    reject(row, result)
                else:
                    readable.append(result)
            is_array = readable and isinstance(readable[0], np.ndarray)
            yield (np.stack(readable) if is_array else readable), len(results)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _advancing(progress: Any, total: int | None):
    """Yields the function that is called with how many more items are done."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda count: None
    else:
        from rich.progress import Progress  # here: a question needs none

        with Progress() as bar:
            task = bar.add_task("encoding", total=total)
            yield lambda count: bar.advance(task, count)
