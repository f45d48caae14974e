"""Average Semantic Precision: agreement of a ranking with the semantic one, over the gallery."""

from typing import Any

import numpy as np

from zoo.metrics.blocks import as_similarity, row_blocks


def average_semantic_precision(similarity: Any, semantic: Any) -> dict[str, float]:
    """ASP: agreement of the model's ranking with the semantic ranking, in both directions.

    ASP of a query = mean over its whole gallery of min(R(i, C), R(i, S)) / max(R(i, C), R(i, S)),
    with R the 1-based rank of item i by the semantic score C and by the similarity S.

    Tied items share their average rank, in both lists, so that the figure does not depend on the
    order of the items. A random ranking scores 0.50 on average, and a constant similarity
    1/4 + ln 2 / 2 ≈ 0.60: compare ASP with that of a baseline, never with 0. A share f of a row
    tied at its end, as the exact zeros of a TF-IDF matrix are, moves it by at most f²/(2 − f)
    against any
    other order of the ties: 0.012 for f = 15 %.

    ```python
    similarity = np.random.rand(4, 6)
    average_semantic_precision(similarity, similarity)  # {"i2t": 1.0, "t2i": 1.0}
    ```

    Args:
        similarity: `(images, captions)` array or `PairwiseSimilarity`, higher is better.
        semantic: `(images, captions)` array or memory map, for instance of `zoo.metrics.cider`.

    Returns:
        A dict: `i2t` and `t2i`, fractions in (0, 1].

    Raises:
        ValueError: if the shapes differ, or a number is NaN.
    Relations: one minus the loss `zoo.losses.SemanticPrecision` as its temperature goes to 0,
        where nothing ties.
    Reference: DAA (Li et al., NeurIPS 2022), equation 4.
    Released code differs: ties are broken by an unstable sort.
    """
    similarity, semantic = checked(similarity, semantic)
    return {
        "i2t": _one_direction(similarity, semantic),
        "t2i": _one_direction(similarity.transposed(), semantic.transposed()),
    }


def semantic_precision_of_coco(similarity, semantic, benchmark):
    """ASP of both directions on a `CocoBenchmark`, `coco_5k_i2t_asp` and so on."""
    parts = {"coco_5k": [(similarity, semantic)]}
    folds = benchmark.folds()
    parts["coco_1k"] = (
        tuple(matrix.take(*fold) for matrix in (similarity, semantic)) for fold in folds
    )
    results = {}
    for name, pairs in parts.items():
        tables = [average_semantic_precision(*pair) for pair in pairs]
        for direction in ("i2t", "t2i"):
            mean = np.mean([table[direction] for table in tables])
            results[f"{name}_{direction}_asp"] = 100 * float(mean)
    return results


def checked(similarity, semantic):
    """Both as similarities that are read by rows, of one shape."""
    similarity, semantic = as_similarity(similarity), as_similarity(semantic)
    if similarity.shape != semantic.shape:
        raise ValueError(
            f"`semantic` must have the shape of `similarity`, {similarity.shape}; "
            f"received {semantic.shape}"
        )
    if 0 in similarity.shape:
        raise ValueError(f"`similarity` must not be empty; received {similarity.shape}")
    return similarity, semantic


def _one_direction(similarity, semantic):
    """The mean over queries of the agreement of both rankings, in blocks of rows."""
    total = 0.0
    for scores, truth in row_pairs(similarity, semantic):
        total += agreement(scores, truth)
    return float(total / similarity.shape[0])


def row_pairs(similarity, semantic):
    """Yields the rows of both, a query after the other."""
    every = [
        (rows for _, block in row_blocks(values, name=name) for rows in block)
        for name, values in (("similarity", similarity), ("semantic", semantic))
    ]
    yield from zip(*every, strict=True)


def agreement(scores, truth):
    """ASP of one query, of its scores by the model and semantically, `(M,)` each."""
    ours, theirs = average_ranks(scores), average_ranks(truth)
    return (np.minimum(ours, theirs) / np.maximum(ours, theirs)).mean()


def average_ranks(scores):
    """1-based ranks, best first; ties share their average rank. `(M,)` in, float64 `(M,)` out."""
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
