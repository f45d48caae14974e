"""CIDEr, CIDEr-D and the TF-IDF cosine of very many pairs, as products of sparse factors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from zoo.cli import verbosity


class NgramVocabulary:
    """Numbers n-grams in the order in which they are first seen."""

    def __init__(self, max_order, tokenizer=None):
        self.max_order = max_order
        self._tokenizer = tokenizer or str.split
        self._ids = {}
        self._orders = []

    def __len__(self):
        return len(self._orders)

    @property
    def orders(self):
        """Words in each n-gram, `(len(self),)`."""
        return np.array(self._orders, int)

    def count(self, captions):
        """Counts the n-grams of captions; unknown ones enter the vocabulary."""
        columns, ends, num_words = [], [0], []
        for caption in captions:
            words = self._tokenizer(caption)
            num_words.append(len(words))
            for order in range(1, self.max_order + 1):
                for start in range(len(words) - order + 1):
                    columns.append(self._id(tuple(words[start : start + order])))
            ends.append(len(columns))
        counts = sparse.csr_array(
            (np.ones(len(columns), np.float32), np.array(columns, int), np.array(ends)),
            shape=(len(ends) - 1, len(self)),
        )
        counts.sum_duplicates()
        return counts, np.array(num_words, int)

    def _id(self, ngram):
        """The id of an n-gram, the next free one if it is new."""
        ngram_id = self._ids.get(ngram)
        if ngram_id is None:
            ngram_id = self._ids[ngram] = len(self._orders)
            self._orders.append(len(ngram))
        return ngram_id


_CAPTIONS = 2048  # counted at once
_GROUPS = 64  # scored at once: a few hundred rows, of all captions


@dataclass(frozen=True)
class CiderFactors:
    """CIDEr of all captions of a corpus against all groups of them, any block of it on demand.

    ```python
    factors = zoo.metrics.cider_factors(["a red bird", "a bird", "a boat"], group_of=[0, 0, 1])
    factors.scores([0, 1], [0, 1, 2])  # (2, 3)
    ```

    The score of a group and a caption is the mean over the group's captions of the scores of the
    pairs, the caption with itself among them. Each is a product of two sparse rows, times, of
    CIDEr-D, a penalty that depends on two lengths. So a group needs one row for each length of its
    captions, or a single one.

    Attributes:
        references: CSR `(R, columns)`, the rows of all groups, one group after the other.
        starts: `(G + 1,)`, where the rows of each group begin.
        reference_lengths: `(R,)`, all 0 without a penalty.
        captions: CSR `(M, columns)`.
        caption_lengths: `(M,)`, likewise.
        sigma: width of the penalty, in words.
    """

    references: sparse.csr_array
    starts: np.ndarray
    reference_lengths: np.ndarray
    captions: sparse.csr_array
    caption_lengths: np.ndarray
    sigma: float

    @property
    def shape(self) -> tuple[int, int]:
        """`(groups, captions)`."""
        return len(self.starts) - 1, self.captions.shape[0]

    def scores(self, groups: ArrayLike, captions: ArrayLike) -> np.ndarray:
        """The scores of some groups `(n,)` and some captions `(m,)`, by index: float32 `(n, m)`."""
        groups, captions = np.asarray(groups, np.int64), np.asarray(captions, np.int64)
        first = self.starts[groups]
        counts = self.starts[groups + 1] - first
        ends = np.cumsum(counts)
        begins = ends - counts
        rows = np.repeat(first - begins, counts) + np.arange(ends[-1] if len(ends) else 0)
        left, right = self.references[rows], self.captions[captions]
        # Only columns of these captions: a transpose over millions of columns is slow.
        columns = np.unique(right.indices)
        product = (_narrowed(left, columns) @ _narrowed(right, columns).T).toarray()
        if self.reference_lengths.any() or self.caption_lengths.any():
            gap = self.reference_lengths[rows][:, None] - self.caption_lengths[captions]
            product *= np.exp(-(gap**2) / (2 * self.sigma**2)).astype(np.float32)
        return np.add.reduceat(product, begins, axis=0) if len(ends) else product

    def matrix(self) -> np.ndarray:
        """The scores of all groups and captions, float32 `(G, M)`."""
        groups, captions = self.shape
        values, every = np.empty((groups, captions), np.float32), np.arange(captions)
        for start in range(0, groups, _GROUPS):
            some = np.arange(start, min(start + _GROUPS, groups))
            values[some] = self.scores(some, every)
        return values


def cider_factors(
    captions: Sequence[str],
    group_of: ArrayLike,
    variant: str = "cider",
    sigma: float = 6.0,
    verbose: bool = False,
    document_of: ArrayLike | None = None,
) -> CiderFactors:
    """Counts the n-grams of a corpus once, and weighs them: `CiderFactors`.

    Args:
        captions: M strings, words set apart by white space.
        group_of: `(M,)` the group of each, 0 … G − 1, every one of which occurs.
        variant, sigma: as of `zoo.metrics.cider`.
        verbose: show a progress bar.
        document_of: `(M,)` the document of each, likewise, over which the document frequencies of
            the n-grams are taken: its image. None: its group.
    """
    group_of = np.asarray(group_of, np.int64)
    orders = 1 if variant == "tfidf" else 4
    counts, words, ngram_orders = _count(captions, NgramVocabulary(orders), verbose)
    documents = group_of if document_of is None else np.asarray(document_of, np.int64)
    frequency = document_frequency(counts, documents)
    idf = np.log((documents.max() + 1) / np.maximum(frequency, 1))
    both = ((counts, words), (counts, words))
    return weighted_factors(both, group_of, idf, ngram_orders, variant, sigma)


def weighted_factors(counted, group_of, idf, orders, variant, sigma):
    """`CiderFactors` of the n-gram counts and numbers of words of references and of candidates;
    `group_of` are the references' groups."""
    (references, left_words), (candidates, right_words) = counted
    clipped = variant == "cider_d"
    left = weighted_columns(references, idf, orders, clipped, weigh_by_count=True)
    right = weighted_columns(candidates, idf, orders, clipped, weigh_by_count=not clipped)
    # The reference scorer's length is the number of bigrams.
    lengths, others = (np.maximum(words - 1, 0) * clipped for words in (left_words, right_words))
    keys, row_of = np.unique(np.stack([group_of, lengths], axis=1), axis=0, return_inverse=True)
    sizes = np.bincount(group_of)
    most = 1 if variant == "tfidf" else 4
    weight = (10 if clipped else 1) / most / sizes[group_of]
    position = (row_of.ravel(), np.arange(len(group_of)))
    gather = sparse.csr_array((weight.astype(np.float32), position), (len(keys), len(group_of)))
    return CiderFactors(
        references=_compact(gather @ left),
        starts=np.searchsorted(keys[:, 0], np.arange(len(sizes) + 1)),
        reference_lengths=keys[:, 1],
        captions=_compact(right),
        caption_lengths=others,
        sigma=float(sigma),
    )


def weighted_columns(counts, idf, orders, clipped, weigh_by_count):
    """N-gram counts, CSR `(captions, ngrams)`, weighed by idf, of unit length for each order."""
    column, count = counts.indices, counts.data
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    norm_of = row * int(orders.max(initial=1)) + orders[column] - 1
    norm = np.sqrt(np.bincount(norm_of, (count * idf[column]) ** 2))[norm_of]
    weight = idf[column] / np.where(norm > 0, norm, 1)
    value = weight * count if weigh_by_count else weight
    largest = int(count.max(initial=1)) if clipped else 1
    entries = [(row, column.astype(np.int64), value)]
    for threshold in range(2, largest + 1):
        keep = count >= threshold
        shifted = column[keep] + np.int64(threshold - 1) * counts.shape[1]
        entries.append((row[keep], shifted, value[keep]))
    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    shape = (counts.shape[0], counts.shape[1] * largest)
    return sparse.csr_array((values.astype(np.float32), (rows, columns)), shape=shape)


def _count(captions, vocabulary, verbose):
    """`(counts, words, orders)`: sparse (captions, n-grams), words of each caption, and n of each
    n-gram."""
    bar = keras.utils.Progbar(len(captions), verbose=verbosity(verbose), unit_name="caption")
    blocks, words = [], []
    for start in range(0, len(captions), _CAPTIONS):
        block, lengths = vocabulary.count(captions[start : start + _CAPTIONS])
        blocks.append(block)
        words.append(lengths)
        bar.update(start + len(lengths))
    for block in blocks:
        block.resize(block.shape[0], len(vocabulary))
    return sparse.vstack(blocks, format="csr"), np.concatenate(words), vocabulary.orders


def document_frequency(counts, documents):
    """In how many documents each n-gram occurs."""
    row = np.repeat(documents, np.diff(counts.indptr))
    shape = (documents.max() + 1, counts.shape[1])
    once = sparse.csr_array((np.ones(len(row), bool), (row, counts.indices)), shape=shape)
    once.sum_duplicates()
    return np.bincount(once.indices, minlength=counts.shape[1])


def _narrowed(matrix, columns):
    """Some columns of a CSR matrix, ascending."""
    place = np.searchsorted(columns, matrix.indices)
    has_column = place < len(columns)
    has_column[has_column] = columns[place[has_column]] == matrix.indices[has_column]
    ends = np.concatenate([[0], np.cumsum(has_column)])[matrix.indptr]
    shape = (matrix.shape[0], len(columns))
    return sparse.csr_array((matrix.data[has_column], place[has_column], ends), shape=shape)


def _compact(matrix):
    """Without zeros, such as n-grams of every group, and with small indices."""
    matrix.eliminate_zeros()
    matrix.sort_indices()
    small = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    matrix.indices, matrix.indptr = matrix.indices.astype(small), matrix.indptr.astype(small)
    return matrix


VARIANTS = ("cider_d", "cider", "tfidf")


def cider(
    references: Sequence[Sequence[str]],
    candidates: Sequence[str],
    variant: str = "cider_d",
    tokenizer: Callable | None = None,
    sigma: float = 6.0,
    smooth_idf: bool = False,
    corpus: Sequence[Sequence[str]] | None = None,
) -> np.ndarray:
    """CIDEr-D, CIDEr or the TF-IDF cosine of every candidate against every group of references.
    Raises ValueError if the variant is unknown, a group is empty, or something is no text.

    ```python
    groups = [["a red bird", "a bird"], ["a boat", "a small boat"]]
    zoo.metrics.cider(groups, ["a red bird"])  # (2, 1)
    ```

    Args:
        references: G groups of captions, for instance the five of each image.
        candidates: M captions.
        variant: `"cider_d"` (n ≤ 4, counts clipped, length penalty, × 10, in [0, 10]), `"cider"`
            (n ≤ 4, the mean cosine, in [0, 1]) or `"tfidf"` (the same of single words).
        tokenizer: a function from a caption to its words; None splits on white space.
        sigma: width of CIDEr-D's length penalty, in words.
        smooth_idf: 1 + log((1 + N)/(1 + df)) in place of log(N/df), so that words of every group
            keep some weight: scikit-learn's form, with which DAA's "CIDEr" was released.
        corpus: groups that say how frequent an n-gram is; None: the references. With one group
            every n-gram is everywhere, and all scores are 0.

    Returns:
        `(G, M)` float32: the mean over the group's references of the pair's score.

    The clipped product is linear, min(a, b) = Σ_t 1(a ≥ t) · 1(b ≥ t), and the length penalty
    depends on two lengths only, of which captions have a few dozen: hence one sparse product for
    each length, over columns (n-gram, t).
    Reference: Vedantam et al., "CIDEr: consensus-based image description evaluation", CVPR 2015;
        DAA (Li et al., NeurIPS 2022), equation 7, with ψ = CIDEr.
    Released code differs: counts are raw, as in the reference scorer, where the paper divides them
        by the caption's length before clipping · that scorer also multiplies plain CIDEr by 10.
    """
    if variant not in VARIANTS:
        raise ValueError(f"`variant` must be one of {VARIANTS}; received {variant!r}")
    if not sigma > 0:
        raise ValueError(f"`sigma` must be positive; received {sigma}")
    references, group_of = _flatten(references, "references")
    known, document_of = (references, group_of) if corpus is None else _flatten(corpus, "corpus")
    candidates, documents = _texts(candidates, "`candidates`"), document_of[-1] + 1
    vocabulary = NgramVocabulary(1 if variant == "tfidf" else 4, tokenizer)
    counts, _ = vocabulary.count(known)
    counts_of_ngrams = document_frequency(counts, document_of)
    counted = [vocabulary.count(captions) for captions in (references, candidates)]
    frequency = np.zeros(len(vocabulary))
    frequency[: len(counts_of_ngrams)] = counts_of_ngrams
    if smooth_idf:
        idf = 1 + np.log((1 + documents) / (1 + frequency))
    else:
        idf = np.log(documents / np.maximum(frequency, 1))
    for counts, _ in counted:
        counts.resize(counts.shape[0], len(idf))
    return weighted_factors(counted, group_of, idf, vocabulary.orders, variant, sigma).matrix()


def _flatten(groups, name):
    """The captions of all groups, and the group of each."""
    captions, group_of = [], []
    for position, group in enumerate(groups):
        captions += _texts(group, f"group {position} of `{name}`")
        group_of += [position] * len(group)
    if not captions:
        raise ValueError(f"`{name}` must hold at least one group; received none")
    return captions, np.array(group_of)


def _texts(captions, what):
    """A list of captions; a ValueError if it is empty or holds anything but strings."""
    if isinstance(captions, str) or not all(isinstance(caption, str) for caption in captions):
        raise ValueError(f"{what} must be a list of strings; received {captions!r:.80}")
    if not len(captions):
        raise ValueError(f"{what} must hold at least one caption; received none")
    return list(captions)
