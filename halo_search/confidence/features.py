"""Numbers of a query that tell whether its first answer is right, and the regression on them."""

import dataclasses

import numpy as np

from halo_search.confidence.scores import RANKS, QueryScores, reached_ranks
from halo_search.confidence.sigmoid import expit, log_expit, logit
from halo_search.embeddings import checks

AGREEMENTS = tuple(f"agreement_{rank}" for rank in RANKS)
# Whatever the gallery, an answer is not less likely right for a greater one of these, nor more
# likely for a greater uncertainty. Few calibration queries would find the opposite by chance.
SIGNS = {
    "best_minus_mean": 1,
    "softmax": 1,
    "z_score": 1,
    **dict.fromkeys(AGREEMENTS, 1),
    "uncertainty": -1,
}
LEAST_GAP = 0.1  # of the scores' standard deviation, which is added so that a tie has a logarithm
# Of the shape of the best scores; where a question wants one item, a softmax over the gallery says
# more, and these say nothing beside it.
GAPS = ("best_minus_mean", "log_gap_2")
# What the probes that come with `halo_search.confidence.Fits` are read by: those were learnt so.
WITHOUT_SOFTMAX = ("best_minus_mean", "z_score", "log_gap_2", *AGREEMENTS, "uncertainty")
# Of the mean standard deviation of a query's scores: maximum likelihood gives .29 to .33 over four
# galleries of photos of two models, and this is as good (docs/results/rivals.md).
TEMPERATURE = 0.3
ODDS = 12.0  # the greatest log odds that are told apart

_FLAT = 1e-9  # of the loss's slope
_HALVINGS = 60  # of an interval, to the last digit of a float


def feature_names(scores, uncertainty=None):
    """The names of `query_features`' columns that these scores have."""
    scores = QueryScores.of(scores)
    agreeing = 0 if scores.agreement is None else len(reached_ranks(scores.top.shape[1]))
    return (
        "best_minus_mean",
        "softmax",
        "z_score",
        "log_gap_2",
        *AGREEMENTS[:agreeing],
        *(() if uncertainty is None else ("uncertainty",)),
    )


def temperature_of(scores):
    """The temperature of a softmax over a gallery, of the `QueryScores` of calibration queries."""
    return max(TEMPERATURE * float(np.sqrt(scores.variance).mean()), 1e-12)


def query_features(scores, uncertainty=None, names=None, temperature=None):
    """Features `(queries, features)` of a `QueryScores` or a matrix `(queries, items)`, in the
    order of `names` or `feature_names`; a ValueError if one cannot be had of these scores.
    `temperature`: of a calibration; None: of these scores."""
    # Of scores s₁ ≥ s₂ ≥ … with mean m and variance v over the gallery: s₁ − m; the log odds of s₁
    # by a softmax over the gallery; (s₁ − m) / √v; log(s₁ − s₂ + √v / 10), copies of the first
    # passed over; the agreements; the uncertainty.
    scores = QueryScores.of(scores)
    there = feature_names(scores, uncertainty)
    names = there if names is None else tuple(names)
    missing = [name for name in names if name not in there]
    if scores.agreement is None and not set(missing).isdisjoint(AGREEMENTS):
        raise ValueError(
            "this confidence reads how like the first answer the next ones are: give scores that "
            "know it, of `QueryScores.of_matrix(similarity, vectors=gallery)` or of "
            "`Index.query_scores`; received scores alone"
        )
    if missing:
        raise ValueError(
            f"the features {', '.join(missing)} were expected; received {', '.join(there)}, from "
            f"the best {scores.top.shape[1]} scores"
        )
    above, deviation = scores.top[:, 0] - scores.mean, np.sqrt(scores.variance)
    least = LEAST_GAP * deviation
    gap = scores.top[:, 0] - scores.second + least
    columns = {
        "best_minus_mean": above,
        "z_score": np.divide(above, deviation, out=np.zeros_like(above), where=deviation > 0),
        "log_gap_2": np.log(gap, out=np.zeros_like(gap), where=least > 0),
    }
    if "softmax" in names:
        if temperature is None:
            temperature = temperature_of(scores)
        columns["softmax"] = softmax_odds(scores, temperature)
    if scores.agreement is not None:
        columns |= dict(zip(AGREEMENTS, scores.agreement.T, strict=False))
    if uncertainty is not None:
        columns["uncertainty"] = checks.vector(uncertainty, "uncertainty", len(scores))
    return np.stack([columns[name] for name in names], axis=1)


def softmax_odds(scores, temperature):
    """The log odds of the first answer by a softmax over the gallery, `(queries,)`, at most 12;
    copies of an answer before are passed over: a picture that is there twice is no rival of itself.

    Reference: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
    """
    best = scores.top[:, :1]

    def weight(values):
        return np.exp((values - best) / temperature)

    others = scores.total(weight) - 1.0
    if scores.is_copy is not None:
        others = others - np.where(scores.is_copy, weight(scores.top), 0.0).sum(axis=1)
    return -np.log(np.maximum(others, np.exp(-ODDS)))


@dataclasses.dataclass(frozen=True, eq=False)
class Logistic:
    """P(true) = sigmoid(w·(x − centre) / spread + b)."""

    centre: np.ndarray  # (features,), means of the features it was fitted on
    spread: np.ndarray  # (features,), their standard deviations; 1 of a constant feature
    weights: np.ndarray
    bias: float

    @classmethod
    def fit(cls, features, correct, penalty, signs=None, weights=None):
        """Minimises the mean negative log likelihood plus ½ penalty ‖w‖²; `correct` may be shares.
        `signs` fixes signs of weights by 1 and −1; `weights` says how much each query counts."""
        share, truth = _shares(weights, len(features)), np.asarray(correct, np.float64)
        centre, spread = features.mean(axis=0), features.std(axis=0)
        spread = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(centre)), spread, 1.0)
        x = np.concatenate([(features - centre) / spread, np.ones((len(features), 1))], axis=1)
        start = np.zeros(x.shape[1])
        start[-1] = logit(share @ truth)
        ridge = np.append(np.full(x.shape[1] - 1, penalty), 0.0)
        found = _newton(x, truth, share, ridge, start)
        if signs is not None:
            found = _with_signs(x, truth, share, ridge, start, found, signs)
        return cls(centre, spread, found[:-1], float(found[-1]))

    def missing_bias(self, features, correct, weights=None):
        """What b lacks for the mean probability of queries to be their share of right ones."""
        share, away = _shares(weights, len(features)), self.logit(features)
        right = share @ correct
        low, high = logit(right) - away.max() - 1, logit(right) - away.min() + 1
        # The mean probability rises with b. `scipy.optimize` would cost each question 25 MB and
        # .2 s to import.
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if share @ expit(away + middle) < right:
                low = middle
            else:
                high = middle
        return float((low + high) / 2)

    def plain(self):
        """`(weights, bias)` on the features as they are, not standardised."""
        slopes = self.weights / self.spread
        return slopes, float(self.bias - slopes @ self.centre)

    def logit(self, features):
        """`(…,)` of `(…, features)`."""
        return (features - self.centre) / self.spread @ self.weights + self.bias

    def probability(self, features):
        """`(…,)` in [0, 1] of `(…, features)`."""
        return expit(self.logit(features))


def _newton(x, truth, share, ridge, start):
    """Newton's method with a step that is halved until the loss falls."""

    def loss(parameters):
        odds = x @ parameters
        likelihood = truth * log_expit(odds) + (1 - truth) * log_expit(-odds)
        return -(share @ likelihood) + 0.5 * ridge @ parameters**2

    found, value = start, loss(start)
    for _ in range(60):
        chance = expit(x @ found)
        slope = x.T @ (share * (chance - truth)) + ridge * found
        curve = (x * (share * chance * (1 - chance))[:, None]).T @ x
        curve += np.diag(ridge + 1e-12)
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-6:
            tried = found - size * step
            new = loss(tried)
            if new <= value:
                break
            size /= 2
        else:
            break
        found, fell, value = tried, value - new, new
        if np.abs(size * step).max() < 1e-9 or fell < 1e-15:
            break
    return found


def _with_signs(x, truth, share, ridge, start, found, signs):
    """The minimum where weights have given signs; `found` is the one without.

    Active sets: weights of a wrong sign are held at zero, and one is let go where the loss falls
    with its sign. The loss is convex, so that where no weight is wrong and none is to be let go, it
    is at its minimum (Nocedal and Wright, "Numerical Optimization", 2006, chapter 16.5).
    """
    signs = np.append(np.asarray(signs), 0)
    held = signs * found < 0
    if not held.any():
        return found
    tried = set()
    while held.tobytes() not in tried:
        tried.add(held.tobytes())
        free = ~held
        found = np.zeros(len(start))
        found[free] = _newton(x[:, free], truth, share, ridge[free], start[free])
        if (wrong := signs * found < 0).any():
            held = held | wrong
            continue
        slope = x.T @ (share * (expit(x @ found) - truth)) + ridge * found
        falls = np.where(held, -signs * slope, 0.0)  # of the loss, as a held weight gets its sign
        if falls.max() <= _FLAT:
            return found
        held = held & (np.arange(len(held)) != falls.argmax())
    return _by_bounds(x, truth, share, ridge, start, signs)


def _by_bounds(x, truth, share, ridge, start, signs):
    """The same by SciPy, should active sets ever go round in a circle."""

    def objective(parameters):
        odds = x @ parameters
        slope = share * (expit(odds) - truth)
        likelihood = truth * log_expit(odds) + (1 - truth) * log_expit(-odds)
        return (-(share @ likelihood) + 0.5 * ridge @ parameters**2, slope @ x + ridge * parameters)

    ends = {0: (None, None), 1: (0, None), -1: (None, 0)}
    # A truncated Newton method goes on to the eighth digit, where L-BFGS-B stops at the fourth.
    options = {"gtol": 1e-9, "ftol": 0, "xtol": 0, "maxfun": 2000}
    bounds = [ends[int(one)] for one in signs]
    from scipy.optimize import minimize  # here: a calibration hardly ever needs it

    return minimize(objective, start, jac=True, method="TNC", bounds=bounds, options=options).x


def _shares(weights, count):
    """Weights that add up to one."""
    if weights is None:
        return np.full(count, 1 / count)
    return np.asarray(weights) / np.sum(weights)
