"""Hubs corrected: what is near to all questions gives way, by one more coordinate of every item."""

import numpy as np

from halo_search.embeddings.arrays import as_arrays, length, thinned
from halo_search.embeddings.spaces import SearchSpace, straight_line

NEIGHBOURS = 10
LEAST = 100  # questions of a bank
MOST = 1000
_CHUNK = 2048  # items at once
_RUN = 10  # columns of which the largest is looked at first


class CorrectedSpace:
    """A `SearchSpace` in which an item that is near to many questions is further away."""

    def __init__(self, base: SearchSpace, bank: np.ndarray, ceiling: float):
        self.base, self.bank, self.ceiling = base, np.ascontiguousarray(bank, np.float32), ceiling
        self.name, self.metric = base.name, base.metric
        self._rows = {row.tobytes(): number for number, row in enumerate(self.bank)}

    @classmethod
    def of(cls, base, score, questions, gallery):
        """The space of a bank of questions, for a gallery that begins with some items."""
        questions = as_arrays(questions, "hubs")
        if length(questions) < LEAST:
            raise ValueError(
                f"`hubs` must hold at least {LEAST} questions; received {length(questions)}"
            )
        if not can_correct(base, score):
            raise ValueError(
                "`hubs` must be None for a similarity whose score is not a straight line in what "
                "the index compares, as of CSD and the cosine; received questions"
            )
        bank = np.asarray(base.queries(thinned(questions, MOST)), np.float32)
        dim = base.gallery(thinned(gallery, 1)).shape[1]
        if bank.shape[1] != dim:
            raise ValueError(f"`hubs` must be of dimension {dim}; received {bank.shape[1]}")
        if not np.isfinite(bank).all():
            raise ValueError("`hubs` must hold finite numbers; received NaN or infinities")
        found = cls(base, bank, 0.0)
        if base.metric == "l2":
            near = found._nearness(base.gallery(thinned(gallery, 20 * MOST)), None)
            found.ceiling = float(np.float32(2 * near.max() - near.min()))
        return found

    @property
    def offset(self):
        """From the queries to what has to be added to FAISS' value, or None."""
        if not self.ceiling:
            return self.base.offset
        of_base = self.base.offset

        def offset(queries):
            own = np.zeros(length(queries)) if of_base is None else of_base(queries)
            return own - self.ceiling / 2

        return offset

    def gallery(self, arrays, left_out=None):
        """Items' coordinates, float32 `(items, dim' + 1)`; `left_out` `(items, n)` are rows of the
        bank that must not count for an item, −1 is none."""
        vectors = self.base.gallery(arrays)
        near = self._nearness(vectors, left_out)
        if self.metric == "l2":
            last = np.sqrt(np.maximum(self.ceiling - near, 0.0) / 2)
        else:
            last = -near / 2
        return np.concatenate([vectors, last[:, None].astype(np.float32)], axis=1)

    def queries(self, arrays):
        """Questions' coordinates, float32 `(queries, dim' + 1)`."""
        vectors = self.base.queries(arrays)
        last = np.full((len(vectors), 1), self.metric == "inner_product", np.float32)
        return np.concatenate([vectors, last], axis=1)

    scores = SearchSpace.scores  # which reads the offset alone

    def shifts(self, arrays, score, left_out=None):
        """What is added to an item's scores, `(items,)`; arguments as of `of` and `gallery`."""
        return -straight_line(score)[0] * self._nearness(self.base.gallery(arrays), left_out) / 2

    def left_out(self, queries, rows, count):
        """Rows of the bank that are questions for each of `count` items, `(count, n)`, −1 padded. A
        probe's questions do not count: its own item was not there when they were asked."""
        vectors = np.ascontiguousarray(self.base.queries(queries), np.float32)
        asked = np.array([self._rows.get(row.tobytes(), -1) for row in vectors])
        pairs = np.stack([rows.ravel(), np.repeat(asked, rows.shape[1])], axis=1)
        pairs = np.unique(pairs[(pairs >= 0).all(axis=1)], axis=0)
        return padded(*pairs.T, count)

    def _nearness(self, vectors, left_out):
        """r of items, `(items,)` float64, pair by pair, so that copies have the same."""
        near, is_l2 = np.empty(len(vectors)), self.metric == "l2"
        norms = np.square(self.bank).sum(axis=1) / 2 if is_l2 else np.float32(0)
        count = min(len(self.bank), NEIGHBOURS)
        for start in range(0, len(vectors), _CHUNK):
            part = vectors[start : start + _CHUNK]
            products = part @ self.bank.T - norms  # of squared distances what tells them apart
            if left_out is not None:
                items, places = np.nonzero(left_out[start : start + _CHUNK] >= 0)
                products[items, left_out[start : start + _CHUNK][items, places]] = -np.inf
            rows = np.sort(_largest(products, count), axis=1)
            found = self.bank[rows]
            if is_l2:
                found -= part[:, None]
                values = np.einsum("ncd,ncd->nc", found, found)
            else:
                values = np.einsum("ncd,nd->nc", found, part)
            near[start : start + _CHUNK] = values.mean(axis=1, dtype=np.float64)
        return near


def can_correct(space, score):
    """Whether hubs can be corrected in a search space, or None, by a score of its value."""
    return space is not None and score is not None and straight_line(score) is not None


def padded(items, rows, count):
    """The rows of each of `count` items, `(count, n)`, −1 padded, of sorted pairs `(pairs,)`."""
    place = np.arange(len(items)) - np.searchsorted(items, items)
    found = np.full((count, int(place.max(initial=0)) + 1), -1)
    found[items, place] = rows
    return found


def _largest(values, count):
    """The columns of the largest values of each row, `(rows, count)`. They are in the runs of
    columns whose largest are the largest, so few have to be sorted."""
    runs = values.shape[1] // _RUN
    if runs < 2 * count:
        return np.argpartition(values, -count, axis=1)[:, -count:]
    whole = values[:, : runs * _RUN].reshape(len(values), _RUN, runs)
    best = np.argpartition(whole.max(axis=1), -count, axis=1)[:, -count:]
    columns = (best[:, None] + runs * np.arange(_RUN)[:, None]).reshape(len(values), -1)
    rest = np.arange(runs * _RUN, values.shape[1])
    columns = np.hstack([columns, np.broadcast_to(rest, (len(values), len(rest)))])
    kept = np.argpartition(np.take_along_axis(values, columns, axis=1), -count, axis=1)
    return np.take_along_axis(columns, kept[:, -count:], axis=1)
