"""Retrieval that asks the gallery twice: queries and items are moved towards their neighbours."""

from collections.abc import Iterator

import numpy as np

from zoo.embeddings import SET, Embedding, EmbeddingLike, kind
from zoo.embeddings.arrays import as_arrays, unit

NEIGHBOURS, WEIGHT = 20, 0.5  # chosen on val1 of real birds, see docs/results/birds.md
_BLOCK = 2**24  # cosines at once, 64 MiB


def augment_gallery(
    gallery: EmbeddingLike, neighbours: int = NEIGHBOURS, weight: float = WEIGHT
) -> Embedding:
    """Moves every item towards the mean of its nearest items; no label and no query is needed.

    What one photo of a kind shows and another hides comes to both. To be done again when items are
    added: it depends on the whole gallery.

    ```python
    photos = {"mean": np.random.default_rng(0).normal(size=(50, 8))}
    index = zoo.search.Index.build(augment_gallery(photos), "cosine")
    ```

    Args:
        gallery: N points, directions or Gaussians, whose means move; what else they hold stays.
        neighbours: k, how many are averaged, by the cosine of means; an item itself is the first.
        weight: w in [0, 1] of the neighbours.

    Returns:
        The embeddings, a dict of arrays: means (1 − w) x + w ‖x‖ u, u the direction of the mean of
        the k directions, brought to the length of x.

    Raises:
        ValueError: if the embeddings are sets or token sequences or hold NaN, k is not from 1 to N,
            or w is not in [0, 1].

    Relations: `expand_queries(gallery, gallery)`.

    Reference: database-side feature augmentation, Arandjelović and Zisserman, "Three things
        everyone should know to improve object retrieval", CVPR 2012, section 5.
    """
    return expand_queries(gallery, gallery, neighbours, weight)


def expand_queries(
    queries: EmbeddingLike,
    gallery: EmbeddingLike,
    neighbours: int = NEIGHBOURS,
    weight: float = WEIGHT,
) -> Embedding:
    """Moves every query towards its best answers, to ask again with what they have in common.

    ```python
    rng = np.random.default_rng(0)
    captions, photos = ({"mean": rng.normal(size=(count, 8))} for count in (3, 50))
    again = query_expansion.expand_queries(captions, photos)
    ```

    Args:
        queries: Q points, directions or Gaussians.
        gallery: N embeddings of the same dimension, such as of `augment_gallery`.
        neighbours, weight: as of `augment_gallery`; neighbours are items of the gallery.

    Returns:
        The queries, a dict of arrays, their means moved as those of `augment_gallery`.

    Raises:
        ValueError: as `augment_gallery`, or if the dimensions differ.

    Reference: average query expansion, Chum et al., "Total Recall", ICCV 2007.
    """
    queries, gallery = _vectors(queries, "queries"), _vectors(gallery, "gallery")
    means, items = queries["mean"], gallery["mean"]
    if means.shape[1:] != items.shape[1:]:
        raise ValueError(
            f"`queries` must have the gallery's dimension, {items.shape[1]}; "
            f"received {means.shape[1]}"
        )
    check(neighbours, weight, len(items))
    directions = unit(items)
    moved = np.empty_like(means)
    for rows in _blocks(len(means), len(items)):
        own = unit(means[rows])
        cosines = own @ directions.T
        nearest = np.argpartition(cosines, -neighbours, axis=1)[:, -neighbours:]
        towards = unit(directions[nearest].mean(axis=1))
        moved[rows] = unit((1 - weight) * own + weight * towards)
    return {**queries, "mean": moved * np.linalg.norm(means, axis=1, keepdims=True)}


def check(neighbours: int, weight: float, size: int) -> None:
    """Raises ValueError unless they are what `augment_gallery` takes for a gallery of that size."""
    if neighbours != int(neighbours) or not 1 <= neighbours <= size:
        raise ValueError(
            f"`neighbours` must be from 1 to the gallery's size, {size}; received {neighbours}"
        )
    if not 0 <= weight <= 1:
        raise ValueError(f"`weight` must be in [0, 1]; received {weight}")


def _vectors(embedding, name) -> Embedding:
    arrays = as_arrays(embedding, name)
    if kind(arrays) == SET:
        raise ValueError(f"`{name}` must have one mean an item, to average it; received {SET}")
    return arrays


def _blocks(queries, items) -> Iterator[slice]:
    size = max(1, _BLOCK // items)
    return (slice(start, start + size) for start in range(0, queries, size))
