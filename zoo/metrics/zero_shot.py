"""Zero-shot classification by prompts, with the most uncertain prompts left out."""

import numpy as np


def zero_shot_scores(similarity, uncertainty, kept=None):
    """The score of every class for every image: the mean over its most certain prompts.

    ```python
    scores = zero_shot_scores(np.random.rand(8, 3, 5), np.random.rand(3, 5), kept=2)  # (8, 3)
    ```

    Args:
        similarity: `(images, classes, prompts)`, higher is better.
        uncertainty: `(classes, prompts)` of the prompts' embeddings.
        kept: K, the number of prompts of a class that count: one for all classes or `(classes,)`;
            None: all.

    Returns:
        `(images, classes)` scores.

    Raises:
        ValueError: if shapes differ or a K is not from 1 to the number of prompts.

    Reference: PCME++ (Chun, ICLR 2024), section 4.4.
    """
    means = _means_of_most_certain(similarity, uncertainty)
    _, classes, prompts = means.shape
    kept = np.broadcast_to(prompts if kept is None else np.asarray(kept), (classes,))
    if kept.min() < 1 or kept.max() > prompts:
        raise ValueError(f"`kept` must be from 1 to {prompts}; received {kept.tolist()}")
    return means[:, np.arange(classes), kept - 1]


def top_1(scores, labels):
    """Share of the images whose own class has the highest score; ties count as errors.

    ```python
    top_1([[0.9, 0.1], [0.8, 0.3]], [0, 1])  # 0.5
    ```

    Args:
        scores: `(images, classes)`.
        labels: `(images,)` columns of the true classes.
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    own = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return float((own > others.max(axis=1)).mean())


def choose_prompts(similarity, uncertainty, labels, per_class=False, sweeps=3):
    """The number of most certain prompts to keep, chosen on a validation split.

    ```python
    kept = choose_prompts(np.random.rand(8, 3, 5), np.random.rand(3, 5), [0, 1, 2, 0, 1, 2, 0, 1])
    ```

    Args:
        similarity: `(images, classes, prompts)` of validation images.
        uncertainty: `(classes, prompts)`.
        labels: `(images,)` columns of the true classes.
        per_class: whether every class has its own K. From the best common K, each class in turn
            takes the K with the highest accuracy over *all* images, with the other classes fixed.
        sweeps: largest number of rounds over the classes; it ends early when nothing changes.

    Returns:
        K, an int, or `(classes,)` of them; among equally good ones the largest.

    Raises:
        ValueError: if shapes differ.

    Reference: PCME++ (Chun, ICLR 2024), section 4.4, "same top-K" and "best top-K per class".
    """
    labels = np.asarray(labels)
    means = _means_of_most_certain(similarity, uncertainty)
    if len(labels) != len(means):
        raise ValueError(f"`labels` must be {len(means)}, one an image; received {len(labels)}")
    accuracies = [top_1(means[:, :, k], labels) for k in range(means.shape[2])]
    common = _last_best(accuracies)
    if not per_class:
        return common + 1
    kept = np.full(means.shape[1], common)
    scores = means[:, :, common].copy()
    for _ in range(sweeps):
        before = kept.copy()
        for column in range(len(kept)):
            kept[column] = _best_of_class(means[:, column], scores, labels, column, kept[column])
            scores[:, column] = means[:, column, kept[column]]
        if (kept == before).all():
            break
    return kept + 1


def _best_of_class(candidates, scores, labels, column, now):
    """The number of prompts of one class that makes most images right; `now` unless better."""
    own = labels == column
    rest = scores.copy()
    rest[:, column] = -np.inf
    rival = rest.max(axis=1)
    true = scores[np.arange(len(labels)), labels]
    # An image of the class must beat its rivals by this class; another is right as long as it
    # was ahead of the others and stays ahead of this class.
    rest[np.arange(len(labels)), labels] = -np.inf
    ahead_of_others = true > rest.max(axis=1)
    right = np.where(
        own[:, None],
        candidates > rival[:, None],
        ahead_of_others[:, None] & (true[:, None] > candidates),
    )
    count = right.sum(axis=0)
    return now if count[now] == count.max() else _last_best(count)


def _means_of_most_certain(similarity, uncertainty):
    """`(images, classes, prompts)`: at k the mean over the k + 1 most certain prompts."""
    similarity, uncertainty = np.asarray(similarity), np.asarray(uncertainty)
    if similarity.ndim != 3 or similarity.shape[1:] != uncertainty.shape:
        raise ValueError(
            "`similarity` must be (images, classes, prompts) and `uncertainty` (classes, prompts); "
            f"received {similarity.shape} and {uncertainty.shape}"
        )
    order = np.argsort(uncertainty, axis=1, kind="stable")
    ordered = np.take_along_axis(similarity, order[None], axis=2)
    counts = np.arange(1, similarity.shape[2] + 1)
    return np.cumsum(ordered, axis=2, dtype=np.float64) / counts


def _last_best(values):
    values = np.asarray(values)
    return int(np.flatnonzero(values == values.max())[-1])
