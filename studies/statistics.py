"""Statistics that the studies share: the area under the ROC curve, a mean with its deviation."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from halo_search.embeddings.checks import vector


def auroc(positives: ArrayLike, negatives: ArrayLike) -> float:
    """The probability that one of the positives is greater than one of the negatives, ties half."""
    positives, negatives = vector(positives, "positives"), vector(negatives, "negatives")
    above = stats.mannwhitneyu(positives, negatives).statistic
    return float(above / (len(positives) * len(negatives)))


def weighted_auroc(values, fit, weights) -> float:
    """`auroc` of values `(n,)` that fit, 1, beside those that do not, 0, each of a weight; ties in
    order."""
    order = np.argsort(values, kind="stable")
    fit, weights = fit[order], weights[order]
    negatives = weights * (1 - fit)
    below = np.cumsum(negatives) - negatives / 2
    return float((weights * fit) @ below / ((weights @ fit) * negatives.sum()))


def mean_and_deviation(values, form=".1f"):
    """`mean ± standard deviation` (n − 1) as text, of one value only itself.

    `–` where one is not a number; results that were read from JSON have None in its place.
    """
    values = np.array(values, float)
    if not np.isfinite(values).all():
        return "–"
    text = f"{np.mean(values):{form}}".replace("-", "−")
    return text if len(values) == 1 else f"{text} ± {np.std(values, ddof=1):{form.lstrip('+')}}"
