"""Every loss over a matrix, and once more in float64, pair by pair: slow and independent."""

import itertools
import math

import numpy as np
import pytest

from zoo import losses


def random_problem(rng, images=5, captions=8, kind="several", scale=1.0):
    """`(matches, logits)` of one of the kinds of labels that a batch can have."""
    logits = scale * rng.normal(size=(images, captions))
    owner = np.arange(captions) % images
    matches = (np.arange(images)[:, None] == owner).astype("float64")
    if kind == "soft":
        matches *= rng.uniform(0.2, 1.0, size=matches.shape)
    if kind == "empty":
        matches[1] = 0
        matches[:, 2] = 0
    return matches.astype("float32"), logits.astype("float32")


KINDS = ("several", "soft", "empty")


def crossentropy(m, s):
    probability = 1 / (1 + math.exp(-s))
    return -m * math.log(probability) - (1 - m) * math.log(1 - probability)


def matching_crossentropy(matches, logits, pseudo_positive_weight, reduction):
    def total(labels):
        values = [crossentropy(labels[i, j], logits[i, j]) for i, j in np.ndindex(logits.shape)]
        return sum(values) / (len(values) if reduction == "mean" else 1)

    pseudo = total(relabelled(matches, logits)) + total(relabelled(matches.T, logits.T).T)
    return total(matches) + pseudo_positive_weight * pseudo / 2


def relabelled(matches, logits):
    labels = matches.copy()
    for i, row in enumerate(matches):
        own = next(j for j, label in enumerate(row) if label == max(row))
        for j in range(len(row)):
            if logits[i, j] >= logits[i, own]:
                labels[i, j] = row[own]
    return labels


def triplet_ranking(matches, logits, margin, mining, reduction):
    return sum(
        _directed_triplets(m, s, margin, mining, reduction)
        for m, s in ((matches, logits), (matches.T, logits.T))
    )


def _directed_triplets(matches, logits, margin, mining, reduction):
    total = weight = 0.0
    for i, j in np.ndindex(matches.shape):
        negatives = [logits[i, k] for k in range(matches.shape[1]) if matches[i, k] == 0]
        if matches[i, j] == 0 or not negatives:
            continue
        if mining == "hardest":
            negatives = [max(negatives)]
        if mining == "semi_hard":
            below = [s for s in negatives if s < logits[i, j]]
            negatives = [max(below) if below else min(negatives)]
        for negative in negatives:
            total += matches[i, j] * max(0.0, margin + negative - logits[i, j])
            weight += matches[i, j]
    return total if reduction == "sum" else total / weight


def info_nce(matches, logits):
    return 0.5 * (_directed_info_nce(matches, logits) + _directed_info_nce(matches.T, logits.T))


def _directed_info_nce(matches, logits):
    queries = []
    for labels, row in zip(matches, logits, strict=True):
        if not any(labels):
            continue
        normaliser = math.log(sum(math.exp(s) for s in row))
        terms = [m * (normaliser - s) for m, s in zip(labels, row, strict=True)]
        queries.append(sum(terms) / sum(labels))
    return np.mean(queries)


def soft_rank(row, i, temperature, weights=None):
    weights = np.ones(len(row)) if weights is None else weights
    others = [j for j in range(len(row)) if j != i]
    steps = [0.5 * (1 + math.tanh((row[j] - row[i]) / (2 * temperature))) for j in others]
    return 1 + sum(weights[j] * step for j, step in zip(others, steps, strict=True))


def hard_rank(row, i):
    return 1 + sum(1 for j in range(len(row)) if row[j] > row[i])


def average_precision(matches, logits, temperature):
    directions = []
    for labels, scores in ((matches, logits), (matches.T, logits.T)):
        queries = []
        for m, row in zip(labels, scores, strict=True):
            if not any(m):
                continue
            precision = [
                m[i] * soft_rank(row, i, temperature, m) / soft_rank(row, i, temperature)
                for i in range(len(row))
            ]
            queries.append(1 - sum(precision) / sum(m))
        directions.append(np.mean(queries))
    return np.mean(directions)


def hard_average_precision(matches, logits):
    """1 − the mean of both directions' mean average precision, by walking down each ranking."""
    directions = []
    for labels, scores in ((matches, logits), (matches.T, logits.T)):
        queries = []
        for m, row in zip(labels, scores, strict=True):
            found, precisions = 0, []
            for place, item in enumerate(np.argsort(-row), start=1):
                if m[item]:
                    found += 1
                    precisions.append(found / place)
            queries.append(np.mean(precisions))
        directions.append(np.mean(queries))
    return 1 - np.mean(directions)


def semantic_precision(semantics, logits, rank):
    """`rank(row, i)` is a hard or a soft one."""
    directions = []
    for by_semantics, by_similarity in ((semantics, logits), (semantics.T, logits.T)):
        values = []
        for c, s in zip(by_semantics, by_similarity, strict=True):
            for i in range(len(c)):
                ranks = rank(c, i), rank(s, i)
                values.append(1 - min(ranks) / max(ranks))
        directions.append(np.mean(values))
    return np.mean(directions)


def uniformity(points):
    pairs = itertools.combinations(points, 2)
    return math.log(np.mean([math.exp(-2 * ((a - b) ** 2).sum()) for a, b in pairs]))


def maximum_mean_discrepancy(x, y, gamma, squared):
    def mean_kernel(first, second):
        distances = [math.sqrt(((a - b) ** 2).sum()) for a in first for b in second]
        return np.mean([math.exp(-gamma * (d**2 if squared else d)) for d in distances])

    return mean_kernel(x, x) + mean_kernel(y, y) - 2 * mean_kernel(x, y)


def diversity(slots):
    items = []
    for item in slots:
        unit = [slot / np.linalg.norm(slot) for slot in item]
        pairs = list(itertools.combinations(unit, 2))
        if pairs:
            items.append(np.mean([math.exp(-2 * ((a - b) ** 2).sum()) for a, b in pairs]))
    return np.mean(items)


ALL = {
    "matching": losses.MatchingCrossentropy(),
    "matching_sum": losses.MatchingCrossentropy(reduction="sum"),
    "pseudo_positives": losses.MatchingCrossentropy(pseudo_positive_weight=0.1),
    "triplet_sum": losses.TripletRanking(),
    "triplet_hardest": losses.TripletRanking(mining="hardest", reduction="mean"),
    "triplet_semi_hard": losses.TripletRanking(mining="semi_hard", margin=0.1),
    "info_nce": losses.InfoNCE(),
    "smooth_ap": losses.SmoothAveragePrecision(0.1),
    "semantic_precision": losses.SemanticPrecision(0.1),
}
every_loss = pytest.mark.parametrize("loss", ALL.values(), ids=ALL)


def close(received, expected, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(received, expected, rtol=rtol, atol=atol)
