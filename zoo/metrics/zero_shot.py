"""Zero-shot classification by prompts, with the most uncertain prompts left out."""

import numpy as np


def mean_embeddings(captions, uncertainty):
    """Each class' mean text embedding over its k most certain prompts, for every k. Raises
    ValueError if the prompts are neither points nor Gaussians, or not as many as uncertainties."""
    uncertainty, mean = np.asarray(uncertainty), np.asarray(captions.get("mean", ()), np.float64)
    if mean.ndim != 2 or len(mean) != uncertainty.size:
        raise ValueError(
            f"`captions` must be points or Gaussians of the {uncertainty.shape} (classes, prompts) "
            f"of `uncertainty`; received {mean.shape}"
        )
    has_unit_length = np.allclose(np.linalg.norm(mean, axis=1), 1, atol=1e-3)
    mean = _means_of_most_certain(mean.reshape(*uncertainty.shape, -1), uncertainty)
    if has_unit_length:
        mean /= np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)
    embeddings = {"mean": mean}
    if "log_variance" in captions:
        variance = np.exp(np.asarray(captions["log_variance"], np.float64))
        variance = variance.reshape(*uncertainty.shape, -1)
        embeddings["log_variance"] = np.log(_means_of_most_certain(variance, uncertainty))
    return {
        name: value.reshape(uncertainty.size, -1).astype("float32")
        for name, value in embeddings.items()
    }


def mean_similarities(similarity, uncertainty):
    """Each class' mean similarity over its k most certain prompts, for every k. Returns `(images,
    classes, prompts)` scores, the last axis k − 1. Raises ValueError if shapes differ."""
    similarity, uncertainty = np.asarray(similarity), np.asarray(uncertainty)
    if similarity.ndim != 3 or similarity.shape[1:] != uncertainty.shape:
        raise ValueError(
            "`similarity` must be (images, classes, prompts) and `uncertainty` (classes, prompts); "
            f"received {similarity.shape} and {uncertainty.shape}"
        )
    by_prompt = np.moveaxis(similarity, 0, -1)
    return np.moveaxis(_means_of_most_certain(by_prompt, uncertainty), -1, 0)


def zero_shot_scores(scores, num_prompts=None):
    """The score of every class for every image, by so many of its most certain prompts. Returns
    `(images, classes)` scores. Raises ValueError if a K is not from 1 to the number of prompts."""
    scores = np.asarray(scores)
    _, classes, prompts = scores.shape
    num_prompts = np.broadcast_to(
        prompts if num_prompts is None else np.asarray(num_prompts), (classes,)
    )
    if num_prompts.min() < 1 or num_prompts.max() > prompts:
        raise ValueError(f"`kept` must be from 1 to {prompts}; received {num_prompts.tolist()}")
    return scores[:, np.arange(classes), num_prompts - 1]


def top_1(scores, labels):
    """Share of the images whose own class has the highest score; ties count as errors."""
    scores, labels = np.asarray(scores), np.asarray(labels)
    label_scores = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return float((label_scores > others.max(axis=1)).mean())


def choose_prompts(scores, labels, per_class=False, sweeps=3):
    """The number of most certain prompts to keep, chosen on a validation split. Raises ValueError
    if there is not one label an image."""
    labels, means = np.asarray(labels), np.asarray(scores)
    if len(labels) != len(means):
        raise ValueError(f"`labels` must be {len(means)}, one an image; received {len(labels)}")
    accuracies = [top_1(means[:, :, k], labels) for k in range(means.shape[2])]
    common = _last_best(accuracies)
    if not per_class:
        return common + 1
    num_prompts = np.full(means.shape[1], common)
    scores = means[:, :, common].copy()
    for _ in range(sweeps):
        before = num_prompts.copy()
        for column in range(len(num_prompts)):
            num_prompts[column] = _best_of_class(
                means[:, column], scores, labels, column, num_prompts[column]
            )
            scores[:, column] = means[:, column, num_prompts[column]]
        if (num_prompts == before).all():
            break
    return num_prompts + 1


def _best_of_class(candidates, scores, labels, column, now):
    """The number of prompts of one class that makes most images right; `now` unless better."""
    of_class = labels == column
    rest = scores.copy()
    rest[:, column] = -np.inf
    rival = rest.max(axis=1)
    true = scores[np.arange(len(labels)), labels]
    # An image of the class must beat its rivals by this class; another is right as long as it
    # was ahead of the others and stays ahead of this class.
    rest[np.arange(len(labels)), labels] = -np.inf
    ahead_of_others = true > rest.max(axis=1)
    right = np.where(
        of_class[:, None],
        candidates > rival[:, None],
        ahead_of_others[:, None] & (true[:, None] > candidates),
    )
    count = right.sum(axis=0)
    return now if count[now] == count.max() else _last_best(count)


def _means_of_most_certain(values, uncertainty):
    """`(classes, prompts, …)`: at k the mean of the values of the k + 1 most certain prompts."""
    order = np.argsort(uncertainty, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order[..., None], axis=1)
    counts = np.arange(1, values.shape[1] + 1)[:, None]
    return np.cumsum(ordered, axis=1, dtype=np.float64) / counts


def _last_best(values):
    """The position of the maximum, the last one if several are equal."""
    values = np.asarray(values)
    return int(np.flatnonzero(values == values.max())[-1])
