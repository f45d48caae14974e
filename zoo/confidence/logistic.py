"""Logistic regression with a normal prior, and two ways to calibrate it again."""

import dataclasses

import numpy as np
from scipy.optimize import brentq, isotonic_regression, minimize
from scipy.special import expit, log_expit, logit

FOLDS = 5


@dataclasses.dataclass(frozen=True)
class Logistic:
    """P(true) = sigmoid(w·(x − centre) / spread + b).

    Attributes:
        centre, spread: `(features,)`, mean and standard deviation of the features it was fitted
            on; the spread of a constant feature is 1.
        weights: `(features,)`.
        bias: b.
    """

    centre: np.ndarray
    spread: np.ndarray
    weights: np.ndarray
    bias: float

    @classmethod
    def fit(cls, features, correct, penalty, signs=None, weights=None):
        """Minimises the mean negative log likelihood plus ½ penalty ‖w‖²; b is not penalised.

        The problem is convex, and strictly so in w: there is one minimum.

        Args:
            features: `(queries, features)`.
            correct: `(queries,)` booleans, both values present.
            penalty: positive.
            signs: `(features,)`, 1 for a weight that must not be negative, −1 for one that must not
                be positive, 0 for any; None for any.
            weights: `(queries,)`, positive, how much each query counts; None for all the same.
        """
        share = _shares(weights, len(features))
        centre, spread = features.mean(axis=0), features.std(axis=0)
        spread = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(centre)), spread, 1.0)
        x, sign = (features - centre) / spread, np.where(correct, 1.0, -1.0)

        def loss(parameters):
            weights, bias = parameters[:-1], parameters[-1]
            margin = sign * (x @ weights + bias)
            slope = -sign * expit(-margin) * share
            gradient = np.append(slope @ x + penalty * weights, slope.sum())
            return -(share @ log_expit(margin)) + 0.5 * penalty * weights @ weights, gradient

        start = np.zeros(x.shape[1] + 1)
        right = share @ correct
        start[-1] = np.log(right / (1 - right))
        ends = {0: (None, None), 1: (0, None), -1: (None, 0)}
        bounds = None if signs is None else [*(ends[sign] for sign in signs), ends[0]]
        found = _minimum(loss, start, bounds)
        return cls(centre, spread, found[:-1], float(found[-1]))

    def missing_bias(self, features, correct, weights=None):
        """What b lacks for the mean probability of queries to be their share of right ones.

        Args:
            features, correct, weights: as of `fit`.
        """
        share, away = _shares(weights, len(features)), self.logit(features)
        right = share @ correct
        ends = logit(right) - away.max() - 1, logit(right) - away.min() + 1
        return float(brentq(lambda by: share @ expit(away + by) - right, *ends))

    def logit(self, features):
        """`(queries,)` of `(queries, features)`."""
        return (features - self.centre) / self.spread @ self.weights + self.bias

    def log_likelihood(self, features, correct, weights=None):
        """The mean log likelihood of what was true."""
        logit = self.logit(features)
        return float(_shares(weights, len(logit)) @ log_expit(np.where(correct, logit, -logit)))


def _minimum(loss, start, bounds):
    """Where a smooth convex loss, which gives its gradient too, is least.

    A truncated Newton method goes on to the eighth digit, where L-BFGS-B stops at the fourth, and
    calls no BLAS, whose threads cost more than such small sums.
    """
    options = {"gtol": 1e-9, "ftol": 0, "xtol": 0, "maxfun": 2000}
    return minimize(loss, start, jac=True, method="TNC", bounds=bounds, options=options).x


def _shares(weights, count):
    """Weights that add up to one."""
    if weights is None:
        return np.full(count, 1 / count)
    return weights / weights.sum()


def out_of_fold_logits(features, correct, penalty, rng, signs=None, groups=None):
    """Each query's logit by a regression that was fitted without it, `(queries,)`.

    Folds are drawn within right and wrong queries, so that every fit sees both; where queries
    belong to `groups`, whole groups are drawn.
    """
    fold = np.empty(len(correct), int)
    if groups is not None:
        fold = rng.permutation(int(groups.max()) + 1)[groups] % FOLDS
    for value in (True, False) if groups is None else ():
        members = rng.permutation(np.flatnonzero(correct == value))
        fold[members] = np.arange(len(members)) % FOLDS
    weights = None if groups is None else 1 / np.bincount(groups)[groups]
    logits = np.empty(len(correct))
    for number in np.unique(fold):
        held_out = fold == number
        own = None if weights is None else weights[~held_out]
        part = Logistic.fit(features[~held_out], correct[~held_out], penalty, signs, own)
        logits[held_out] = part.logit(features[held_out])
    return logits


def platt(logits, correct):
    """Slope and shift of sigmoid(slope · logit + shift), by likelihood with Platt's targets.

    Returns:
        `{"slope", "shift"}`. The slope is not negative, so the order of queries stays.

    Reference: Platt, "Probabilistic outputs for support vector machines", 1999.
    """
    right, wrong = correct.sum(), (~correct).sum()
    target = np.where(correct, (right + 1) / (right + 2), 1 / (wrong + 2))

    def loss(parameters):
        logit = parameters[0] * logits + parameters[1]
        error = (expit(logit) - target) / len(logits)
        value = -(target * log_expit(logit) + (1 - target) * log_expit(-logit)).mean()
        return value, np.array([error @ logits, error.sum()])

    slope, shift = _minimum(loss, np.array([1.0, 0.0]), [(0, None), (None, None)])
    return {"slope": float(slope), "shift": float(shift)}


def isotonic(logits, correct):
    """The increasing step function of the logit that fits best, as knots to interpolate.

    Returns:
        `{"logit", "probability"}`, two rising lists.

    Reference: Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass
        probability estimates", KDD 2002.
    """
    values, group = np.unique(logits, return_inverse=True)
    count = np.bincount(group).astype(float)
    level = isotonic_regression(np.bincount(group, correct) / count, weights=count).x
    edge = np.flatnonzero(np.diff(level, prepend=np.nan, append=np.nan) != 0)
    # Both ends of every step; between two steps the probability rises in a line.
    ends = np.unique(np.concatenate([edge[edge < len(level)], edge[edge > 0] - 1]))
    return {"logit": values[ends].tolist(), "probability": level[ends].tolist()}
