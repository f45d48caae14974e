"""CIDEr, CIDEr-D and the TF-IDF cosine of all pairs, as one sparse product."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zoo.metrics.cider_factors import NgramVocabulary, document_frequency, weighted_factors

VARIANTS = ("cider_d", "cider", "tfidf")


class Cider:
    """Scores captions against groups of references, all pairs at once.

    ```python
    corpus = [["a red bird", "a bird"], ["a boat", "a small boat"]]
    zoo.metrics.Cider(corpus).score(corpus, ["a red bird"])  # (2, 1)
    ```

    Args:
        corpus: groups of captions (a group: the captions of one image), which say how frequent an
            n-gram is. At least two: with one, every n-gram is everywhere and all scores are 0.
        variant: `"cider_d"` (n ≤ 4, counts clipped, length penalty, × 10, in [0, 10]), `"cider"`
            (n ≤ 4, the mean cosine, in [0, 1]) or `"tfidf"` (the same of single words).
        tokenizer: a function from a caption to its words; None splits on white space.
        sigma: width of CIDEr-D's length penalty, in words.
        smooth_idf: 1 + log((1 + N)/(1 + df)) in place of log(N/df), so that words of every group
            keep some weight: scikit-learn's form, with which DAA's "CIDEr" was released.

    The clipped product is linear, min(a, b) = Σ_t 1(a ≥ t) · 1(b ≥ t), and the length penalty
    depends on two lengths only, of which captions have a few dozen: hence one sparse product for
    each length, over columns (n-gram, t).

    Reference: Vedantam et al., "CIDEr: consensus-based image description evaluation", CVPR 2015.

    Released code differs: counts are raw, as in the reference scorer, where the paper divides them
        by the caption's length before clipping · that scorer also multiplies plain CIDEr by 10.
    """

    def __init__(
        self,
        corpus: Sequence[Sequence[str]],
        variant: str = "cider_d",
        tokenizer: Callable | None = None,
        sigma: float = 6.0,
        smooth_idf: bool = False,
    ):
        if variant not in VARIANTS:
            raise ValueError(f"`variant` must be one of {VARIANTS}; received {variant!r}")
        if not sigma > 0:
            raise ValueError(f"`sigma` must be positive; received {sigma}")
        captions, group_of = _flatten(corpus, "corpus")
        self.variant, self.sigma, self.smooth_idf = variant, sigma, smooth_idf
        self._vocabulary = NgramVocabulary(1 if variant == "tfidf" else 4, tokenizer)
        counts, _ = self._vocabulary.count(captions)
        self._num_groups = len(corpus)
        self._frequency = document_frequency(counts, group_of)

    def score(self, references: Sequence[Sequence[str]], candidates: Sequence[str]) -> np.ndarray:
        """Scores every candidate against every group.

        Args:
            references: G groups of captions.
            candidates: M captions.

        Returns:
            `(G, M)` float32: the mean over the group's references of the pair's score.

        Raises:
            ValueError: if a group is empty, or a group or a candidate is no text.
        """
        references, group_of = _flatten(references, "references")
        candidates = _texts(candidates, "`candidates`")
        counted = [self._vocabulary.count(captions) for captions in (references, candidates)]
        frequency = np.zeros(len(self._vocabulary))
        frequency[: len(self._frequency)] = self._frequency
        if self.smooth_idf:
            idf = 1 + np.log((1 + self._num_groups) / (1 + frequency))
        else:
            idf = np.log(self._num_groups / np.maximum(frequency, 1))
        for counts, _ in counted:
            counts.resize(counts.shape[0], len(idf))
        orders = self._vocabulary.orders
        return weighted_factors(counted, group_of, idf, orders, self.variant, self.sigma).matrix()


def cider(
    references: Sequence[Sequence[str]],
    candidates: Sequence[str],
    variant: str = "cider_d",
    tokenizer: Callable | None = None,
    **kwargs: Any,
) -> np.ndarray:
    """CIDEr-D, CIDEr or the TF-IDF cosine of every candidate against every group of references.

    Args:
        references: G groups of captions, for instance the five of each image. Document
            frequencies are taken over these groups.
        candidates: M captions.
        variant: `"cider_d"`, `"cider"` or `"tfidf"`, see `Cider`.
        tokenizer: a function from a caption to its words; None splits on white space.
        **kwargs: `sigma` and `smooth_idf` of `Cider`.

    Returns:
        `(G, M)` float32, the semantic similarity of `average_semantic_precision`.

    Raises:
        ValueError: if the variant is unknown, a group is empty, or something is no text.

    Relations: `Cider(references, variant).score(references, candidates)`; use the class where
        the document frequencies come from another corpus, as in training.

    Reference: DAA (Li et al., NeurIPS 2022), equation 7, with ψ = CIDEr.
    """
    _flatten(references, "references")  # so that an error names what was given here
    return Cider(references, variant, tokenizer, **kwargs).score(references, candidates)


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
    if isinstance(captions, str) or not all(isinstance(caption, str) for caption in captions):
        raise ValueError(f"{what} must be a list of strings; received {captions!r:.80}")
    if not len(captions):
        raise ValueError(f"{what} must hold at least one caption; received none")
    return list(captions)
