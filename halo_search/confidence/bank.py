"""A second opinion: captioned photos of training, and what those that are near a photo show."""

import dataclasses
import functools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from halo_search.confidence.senses import Lexicon, Senses
from halo_search.confidence.words import stems
from halo_search.embeddings.arrays import unit
from halo_search.errors import InputError
from halo_search.files.array_files import read_arrays

NEAREST = 20  # captioned photos that tell of a photo
WIDTH = 0.08  # of the weights exp(cosine / WIDTH) of these
SAME = 0.9995  # cosine from which a captioned photo is the photo itself, which tells nothing new
SHRINK = 3.0  # captioned photos with the usual share of a word, which weigh beside these
# Of a question and an item: the cosine with its pseudo-caption, and the log of its rank in the
# gallery; the log of how much more often photos near it hold the question's words than all do: the
# mean, and that in standard deviations over the gallery; and the log of the least share of photos
# near it that hold a word. Then how like the question are the ten captioned photos that are most
# like it, and the ten captions, which tell what a score is worth.
COLUMNS = "told", "told_rank", "words", "words_z", "share", "general", "captions"
LIKE = 10
_BLOCK, _KEPT = 1024, 4096  # items at once, and stems that are remembered


def hashed(stem: str) -> int:
    """The number that stands for a stem."""
    return zlib.crc32(stem.encode())


def packed(vectors: np.ndarray) -> np.ndarray:
    """Directions as int8, each row by its greatest number."""
    scale = 127 / np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12)
    return np.rint(vectors * scale).astype(np.int8)


@dataclasses.dataclass(frozen=True, eq=False)
class Bank:
    """Vectors of B captioned photos and of their captions, and which of them hold which stems.

    No caption is in it. It lies in a model's `halo_search.confidence.Probes`.
    """

    images: np.ndarray  # (B, dim) int8, of each photo's mean
    captions: np.ndarray  # (B, dim) int8, of the mean of its captions' means
    stems: np.ndarray  # (S,) uint32, sorted hashes of stems
    starts: np.ndarray  # (S + 1,) int32: the photos of stem i are `photos[starts[i]:starts[i + 1]]`
    photos: np.ndarray  # uint16
    # The words of a `Lexicon`, UTF-8 with a line each, and their means `(W, dim)` as int8.
    words: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, np.uint8))
    word_vectors: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 0), np.int8))

    def __post_init__(self):
        count = len(self.images)
        if self.captions.shape != self.images.shape or not NEAREST < count < 2**16:
            raise ValueError("a bank must have as many photos as captions' vectors, 21 to 65,535")
        fits = len(self.starts) == len(self.stems) + 1 and self.starts[-1] == len(self.photos)
        if not fits or (len(self.photos) and self.photos.max() >= count):
            raise ValueError("a bank's stems must name its photos")
        if len(self.lexicon.words) != len(self.word_vectors):
            raise ValueError("a bank must have as many words as vectors of words")

    @classmethod
    def of(
        cls,
        images,
        captions,
        owners,
        texts: Sequence[str],
        least: int = 2,
        lexicon: Lexicon | None = None,
    ) -> "Bank":
        """Of means `(B, dim)` and `(M, dim)` of photos and captions, the row of each caption's
        photo and its text. Stems of fewer than `least` photos are left out."""
        owners = np.asarray(owners)
        means = np.zeros(images.shape, np.float64)
        np.add.at(means, owners, unit(np.asarray(captions, np.float64)))
        bank = cls(
            packed(unit(np.asarray(images, np.float64))), packed(means), *_empty_stems()
        ).with_texts(owners, texts, least)
        return bank if lexicon is None else bank.with_lexicon(lexicon)

    def with_texts(self, owners, texts: Sequence[str], least: int = 2) -> "Bank":
        """The same photos and vectors with the stems of captions, see `of`."""
        found = {}
        for text, owner in zip(texts, owners, strict=True):
            for stem in stems(text):
                found.setdefault(hashed(stem), set()).add(int(owner))
        kept = sorted(stem for stem, photos in found.items() if len(photos) >= least)
        lists = [sorted(found[stem]) for stem in kept]
        return dataclasses.replace(
            self,
            stems=np.array(kept, np.uint32),
            starts=np.cumsum([0, *map(len, lists)]).astype(np.int32),
            photos=np.concatenate([*lists, []]).astype(np.uint16),
        )

    def with_lexicon(self, lexicon: Lexicon) -> "Bank":
        """The same with words of one meaning."""
        words = np.frombuffer("\n".join(lexicon.words).encode(), np.uint8)
        return dataclasses.replace(self, words=words, word_vectors=packed(lexicon.vectors))

    @functools.cached_property
    def lexicon(self) -> Lexicon:
        """The words of captions with their vectors; empty where the bank has none."""
        text = self.words.tobytes().decode()
        return Lexicon(text.split("\n") if text else [], self.word_vectors)

    def holding(self, stem: str) -> np.ndarray:
        """The photos whose captions hold a stem."""
        number = hashed(stem)
        row = int(np.searchsorted(self.stems, number))
        if row == len(self.stems) or self.stems[row] != number:
            return self.photos[:0]
        return self.photos[self.starts[row] : self.starts[row + 1]]

    def holding_any(self, sense: frozenset[str]) -> np.ndarray:
        """The photos whose captions hold a stem of a set, `(B,)` booleans."""
        holds = np.zeros(len(self.images), bool)
        for stem in sense:
            holds[self.holding(stem)] = True
        return holds

    def share(self, sense: frozenset[str]) -> float:
        """The share of photos whose captions hold a stem of a set, never 0."""
        return (self.holding_any(sense).sum() + 0.25) / (len(self.images) + 0.5)

    @functools.cached_property
    def photo_units(self):
        """The photos' directions, `(B, dim)` float32."""
        return unit(self.images.astype(np.float32))

    @functools.cached_property
    def caption_units(self):
        """The directions of the photos' captions, `(B, dim)` float32."""
        return unit(self.captions.astype(np.float32))

    def near(self, vectors: np.ndarray) -> "Near":
        """What the photos nearest to items say of them; of means `(N, dim)`."""
        bank, captions = self.photo_units, self.caption_units
        parts = []
        for start in range(0, max(1, len(vectors)), _BLOCK):  # once for an empty gallery
            own = unit(np.asarray(vectors[start : start + _BLOCK], np.float32))
            cosines = own @ bank.T
            cosines[cosines > SAME] = -1.0
            rows = np.argpartition(-cosines, NEAREST, axis=1)[:, :NEAREST]
            found = np.take_along_axis(cosines, rows, axis=1)
            order = np.argsort(-found, axis=1)
            rows, found = (np.take_along_axis(x, order, axis=1) for x in (rows, found))
            weights = np.exp((found - found[:, :1]) / WIDTH)
            weights /= weights.sum(axis=1, keepdims=True)
            told = np.einsum("nk,nkd->nd", weights, captions[rows])
            levels = np.rint(255 * weights).astype(np.uint8)
            parts.append((rows.astype(np.uint16), levels, packed(told)))
        return Near(*map(np.concatenate, zip(*parts, strict=True)))


def _empty_stems():
    return np.empty(0, np.uint32), np.zeros(1, np.int32), np.empty(0, np.uint16)


@dataclasses.dataclass(frozen=True, eq=False)
class Near:
    """What captioned photos say of N items: rows of a `Bank`, 380 bytes an item at 320 numbers."""

    rows: np.ndarray  # (N, NEAREST) uint16
    weights: np.ndarray  # (N, NEAREST) uint8, of 255
    told: np.ndarray  # (N, dim) int8, a pseudo-caption: the weighted mean of theirs

    def __len__(self):
        return len(self.rows)

    @classmethod
    def load(cls, path: Any) -> "Near":
        """Reads what `numpy.savez` wrote of `arrays`; an InputError says what is wrong."""
        try:
            return cls(**read_arrays(path))
        except TypeError as error:
            raise InputError(f"{path}: {error}; build the index again") from error

    def take(self, places: Any) -> "Near":
        """Some of the items."""
        return Near(**{name: values[places] for name, values in self.arrays().items()})

    def of(self, bank: Bank, vectors: np.ndarray, senses: Sequence[Senses], places: np.ndarray):
        """`COLUMNS` `(Q, k, columns)` of questions, their means `(Q, dim)` and what their words may
        be called, and of the places `(Q, k)` of their answers among the items."""
        asked_for = unit(np.asarray(vectors, np.float32))
        cosines = asked_for @ self._told.T
        general, captions = (
            np.partition(asked_for @ units.T, -LIKE, axis=1)[:, -LIKE:].mean(axis=1)
            for units in (bank.photo_units, bank.caption_units)
        )
        found = np.empty((*places.shape, len(COLUMNS)))
        for row, (own, asked, chosen) in enumerate(zip(cosines, senses, places, strict=True)):
            asked = asked or [frozenset()]
            common = np.array([bank.share(sense) for sense in asked])[:, None]
            held = np.stack([self._share(bank, sense) for sense in asked])
            ratio = np.log((NEAREST * held + SHRINK * common) / ((NEAREST + SHRINK) * common))
            words, least = ratio.mean(axis=0), held.min(axis=0)
            before = len(own) - np.searchsorted(np.sort(own), own[chosen], side="right")
            columns = (
                own[chosen],
                np.log(1 + before),
                words[chosen],
                (words[chosen] - words.mean()) / (words.std() + 0.05),
                np.log(least[chosen] + 0.01),
                general[row],
                captions[row],
            )
            for column, values in enumerate(columns):
                found[row, :, column] = values
        return found

    def showing(self, bank: Bank, texts: Sequence[str]) -> np.ndarray:
        """About how many items show the rarest word of each text, `(Q,)`: the sum over all items of
        the share of captioned photos near one that hold the word as it is spelled."""

        def items_showing(stem):
            return float(self._share(bank, frozenset([stem])).sum())

        return np.array([min(map(items_showing, stems(text)), default=0.0) for text in texts])

    def arrays(self) -> dict[str, np.ndarray]:
        """What `numpy.savez` takes; `Near(**arrays)` is the inverse."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @functools.cached_property
    def _told(self):
        return unit(self.told.astype(np.float32))

    @functools.cached_property
    def _shares(self):
        return {}

    def _share(self, bank, sense):
        """How much of what is near each item holds a stem of a set, `(N,)`."""
        found = self._shares.get(sense)
        if found is None:
            has = bank.holding_any(sense).astype(np.float32) / 255
            found = np.einsum("nk,nk->n", has[self.rows], self.weights, dtype=np.float32)
            if len(self._shares) >= _KEPT:
                self._shares.clear()
            self._shares[sense] = found
        return found
