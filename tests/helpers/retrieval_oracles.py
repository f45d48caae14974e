"""The metrics as plain loops over full rankings: slow, and too simple to be wrong."""

import numpy as np


def ranking(scores, relevant):
    """Gallery positions best first; at equal scores the items that are not relevant lead."""
    return np.lexsort((relevant, -scores))


def per_query(similarity, relevance, metric):
    """The mean of `metric(relevant in ranked order)` over queries with a positive."""
    values = [
        metric(relevant[ranking(scores, relevant)])
        for scores, relevant in zip(similarity, relevance, strict=True)
        if relevant.any()
    ]
    return float(np.mean(values))


def recall_at_k(similarity, relevance, k):
    return per_query(similarity, relevance, lambda found: found[:k].any())


def r_precision(similarity, relevance):
    return per_query(similarity, relevance, lambda found: found[: found.sum()].mean())


def mean_average_precision_at_r(similarity, relevance):
    def average_precision(found):
        size = found.sum()
        return sum(found[: i + 1].mean() for i in range(size) if found[i]) / size

    return per_query(similarity, relevance, average_precision)
