"""CIDEr, CIDEr-D and the TF-IDF cosine of all pairs, as one sparse product."""

from collections.abc import Callable, Sequence

import numpy as np

from zoo.metrics.cider_factors import NgramVocabulary, document_frequency, weighted_factors

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

    Raises:
        ValueError: if the variant is unknown, a group is empty, or something is no text.

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
    found = document_frequency(counts, document_of)
    counted = [vocabulary.count(captions) for captions in (references, candidates)]
    frequency = np.zeros(len(vocabulary))
    frequency[: len(found)] = found
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
    if isinstance(captions, str) or not all(isinstance(caption, str) for caption in captions):
        raise ValueError(f"{what} must be a list of strings; received {captions!r:.80}")
    if not len(captions):
        raise ValueError(f"{what} must hold at least one caption; received none")
    return list(captions)
