"""Average Semantic Precision: agreement of a ranking with the semantic one, over the gallery."""

from typing import Any

import numpy as np

from zoo.metrics.blocks import as_similarity, row_blocks


def average_semantic_precision(
    similarity: Any, semantic: Any, block_size: int | None = None
) -> dict[str, float]:
    """ASP: agreement of the model's ranking with the semantic ranking, in both directions.

    ASP of a query = mean over its whole gallery of min(R(i, C), R(i, S)) / max(R(i, C), R(i, S)),
    with R the 1-based rank of item i by the semantic score C and by the similarity S.

    Tied items share their average rank, in both lists. So the figure does not depend on the
    order of the items; a random ranking scores 0.50 on average, not 0, and a constant similarity
    1/4 + ln 2 / 2 ≈ 0.60, more than a random one. Compare ASP with that of a baseline, never with
    0. The rule moves the figure little: a share f of a row tied at its end, as the exact zeros of
    a TF-IDF matrix are, moves it by at most f²/(2 − f) against any other order of the ties: 0.012
    for f = 15 %.

    ```python
    similarity = np.random.rand(4, 6)
    average_semantic_precision(similarity, similarity)  # {"i2t": 1.0, "t2i": 1.0}
    ```

    Args:
        similarity: `(images, captions)` array or `PairwiseSimilarity`, higher is better.
        semantic: `(images, captions)` array or memory map, for instance of `zoo.metrics.cider`.
        block_size: queries a block; None for as many as fit into 64 MiB.

    Returns:
        A dict: `i2t` and `t2i`, fractions in (0, 1].

    Raises:
        ValueError: if the shapes differ, or a number is NaN.

    Relations: one minus the loss `zoo.losses.SemanticPrecision` as its temperature goes to 0,
        where nothing ties.

    Reference: DAA (Li et al., NeurIPS 2022), equation 4.

    Released code differs: ties are broken by an unstable sort.
    """
    similarity, semantic = _checked(similarity, semantic)
    return {
        "i2t": _one_direction(similarity, semantic, block_size),
        "t2i": _one_direction(similarity.transposed(), semantic.transposed(), block_size),
    }


def semantic_precision_of_coco(similarity, semantic, benchmark, block_size=None):
    """ASP of both directions, `coco_5k_i2t_asp` and so on.

    Args:
        similarity, semantic: of the benchmark's images and captions.
        benchmark: a `CocoBenchmark`.
        block_size: see `coco_benchmark`.

    Reference: DAA (Li et al., NeurIPS 2022), table 1.
    """
    parts = {"coco_5k": [(similarity, semantic)]}
    folds = benchmark.folds()
    parts["coco_1k"] = (tuple(one.take(*fold) for one in (similarity, semantic)) for fold in folds)
    results = {}
    for name, pairs in parts.items():
        tables = [average_semantic_precision(*pair, block_size) for pair in pairs]
        for direction in ("i2t", "t2i"):
            mean = np.mean([table[direction] for table in tables])
            results[f"{name}_{direction}_asp"] = 100 * float(mean)
    return results


def semantic_precision_at(similarity, semantic, depths, block_size=None):
    """ASP among the N items of each query that are semantically nearest, for several N.

    The N items are a gallery of their own: both rankings are of them alone. Of items that tie at
    the end of the N, those that come first in the gallery are taken.

    Args:
        similarity, semantic, block_size: see `average_semantic_precision`.
        depths: the N, each at least 1; what is above the size of the gallery is all of it.

    Returns:
        A dict: `i2t` and `t2i`, lists of fractions, one a depth.

    Raises:
        ValueError: as `average_semantic_precision`, and if a depth is below 1.

    Relations: with N the size of the gallery it is `average_semantic_precision`.

    Reference: DAA (Li et al., NeurIPS 2022), section 5.4 and figure 3.
    """
    if not len(depths) or min(depths) < 1:
        raise ValueError(f"`depths` must be whole numbers of 1 and above; received {depths}")
    similarity, semantic = _checked(similarity, semantic)
    return {
        "i2t": _one_direction(similarity, semantic, block_size, depths),
        "t2i": _one_direction(similarity.transposed(), semantic.transposed(), block_size, depths),
    }


def pairs_above(semantic, thresholds, block_size=None):
    """How many pairs of an image and a caption have a semantic score above each threshold.

    Args:
        semantic, block_size: see `average_semantic_precision`.
        thresholds: the scores.

    Returns:
        A list of whole numbers.

    Reference: DAA (Li et al., NeurIPS 2022), figure 1 (b).
    """
    thresholds = np.asarray(thresholds, float)
    counts = np.zeros(len(thresholds), int)
    for _, rows in row_blocks(as_similarity(semantic), block_size, name="semantic"):
        ordered = np.sort(rows, axis=None)
        counts += ordered.size - np.searchsorted(ordered, thresholds, side="right")
    return counts.tolist()


def _checked(similarity, semantic):
    similarity, semantic = as_similarity(similarity), as_similarity(semantic)
    if similarity.shape != semantic.shape:
        raise ValueError(
            f"`semantic` must have the shape of `similarity`, {similarity.shape}; "
            f"received {semantic.shape}"
        )
    if 0 in similarity.shape:
        raise ValueError(f"`similarity` must not be empty; received {similarity.shape}")
    return similarity, semantic


def _one_direction(similarity, semantic, block_size, depths=None):
    total = np.zeros(() if depths is None else len(depths))
    blocks = zip(
        row_blocks(similarity, block_size),
        row_blocks(semantic, block_size, name="semantic"),
        strict=True,
    )
    for (_, model_rows), (_, semantic_rows) in blocks:
        for scores, truth in zip(model_rows, semantic_rows, strict=True):
            if depths is None:
                total += _of_query(scores, truth)
            else:
                nearest = np.argsort(-truth, kind="stable")
                scores, truth = scores[nearest], truth[nearest]
                total += np.array([_of_query(scores[:n], truth[:n]) for n in depths])
    return (total / similarity.shape[0]).tolist()


def _of_query(scores, truth):
    ours, theirs = average_ranks(scores), average_ranks(truth)
    return (np.minimum(ours, theirs) / np.maximum(ours, theirs)).mean()


def average_ranks(scores):
    """1-based ranks, best first; ties share their average rank. `(M,)` in, float64 `(M,)` out.

    Relations: `scipy.stats.rankdata(-scores)`, which is several times slower.
    """
    order = np.argsort(scores)[::-1]
    ordered = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ranks = np.empty(len(scores))
    if len(starts) == len(scores):
        ranks[order] = np.arange(1, len(scores) + 1)
    else:
        sizes = np.diff(starts, append=len(scores))
        ranks[order] = np.repeat(starts + (sizes + 1) / 2, sizes)
    return ranks
