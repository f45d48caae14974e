"""Whether a result fits the question, as people judge it: not the wanted item alone does."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, stdtr

from zoo.confidence import checks, quality
from zoo.confidence.features import LEAST_GAP, Logistic
from zoo.confidence.words import is_short

REFERENCE = 10  # best scores over the probes' items, whose mean is r
LEAST_NUMBER = 0.25  # of fitting items, which is added so that none has a logarithm
# Share of the questions that have an answer: of all who ask, so that no answer depends on what else
# is asked beside it.
ANSWERABLE = 0.7
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)  # of the scores beyond the best 20
REACH = 6.0  # standard deviations below the mean that count
LEAST_ANSWERED = 0.05  # share of a trial's questions from which a cut-off is tested
# Of each test of a cut-off, that it passes unjustly. Half of what is promised of a gallery: its
# questions share its items, so that they tell less than as many independent ones.
TEST_LEVEL = 0.05
NEAR_SIZE = 2.0  # a certificate is of a captioned gallery at most this much smaller or larger


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """Questions whose fitting items are known, asked over a captioned gallery."""

    size: int  # number of items
    probability: np.ndarray  # (Q, R), that each of the best R results fits
    fit: np.ndarray  # (Q, R), whether it does: 0 or 1, or by an oracle a probability
    asked: int  # questions per gallery; of several galleries Q is a multiple of it

    def __post_init__(self):
        if self.probability.ndim != 2 or self.probability.shape != self.fit.shape:
            raise ValueError("a trial must have a fit for each probability")


@dataclasses.dataclass(frozen=True, eq=False)
class Strangers:
    """The best items of captioned photos' questions, their own left out."""

    score: np.ndarray  # (n,)
    item: np.ndarray  # (n,), the row among the model's probes
    fit: np.ndarray  # (n,), how likely it fits
    items: int  # of the probes


class Cut(NamedTuple):
    """A certified cut-off: results with a probability of at least `threshold` are shown."""

    unfit: float  # the promised share of shown results that do not fit
    threshold: float
    answered: float  # share of the questions that are shown a result at all
    size: int  # of the captioned gallery that certified it


@dataclasses.dataclass(frozen=True, eq=False)
class Fits:
    """How likely an item other than the wanted one fits, for one model and one direction.

    ρ = σ(a s + b) for a sentence or a picture with the score s, and σ(a s + c π + b) for a question
    of up to three content words, where π is the log odds that a photo of a caption bank holds them.
    A result fits with P = p + (1 − p) ρ, where p is the probability that it is a wanted item.

    `zoo.evaluation.fits.learn_fits` learns it from captioned photos at the end of training.

    ```python
    fits = zoo.confidence.Fits(sentence=np.array([5.9, 10.4]), words=None)
    fits.others(np.array([[-1.2, -1.5, -2.0]]))  # ρ of the best three results, (1, 3)
    ```

    Attributes:
        sentence: `(2,)`, a and b.
        words: `(3,)`, a, c and b, or None where the bank does not know the captions' language.
        presence: a `Logistic` of `presence_features`: whether anything fits, at even odds; or None.
        absent_below: log odds of presence that 95 % of answerable questions exceed.
        words_below: probability of the first result that 98 % of general words exceed.
        trials: `Trial`s over captioned galleries of several sizes.
        source: what it was learnt from, in words.
        most: what no probability exceeds; None: what `trials` have shown.
        strangers: `Strangers`, by which `near` learns for a gallery of one kind; or None.

    Raises:
        ValueError: if the numbers do not fit.

    Reference: docs/results/confidence.md for the formulas' measurements on people's judgments.
    """

    sentence: np.ndarray
    words: np.ndarray | None
    presence: Logistic | None = None
    absent_below: float = 0.0
    words_below: float = 0.0
    trials: tuple[Trial, ...] = ()
    source: str = ""
    most: float | None = None
    strangers: Strangers | None = None

    def __post_init__(self):
        if np.shape(self.sentence) != (2,):
            raise ValueError(f"'sentence' must be (2,); received {np.shape(self.sentence)}")
        if self.words is not None and np.shape(self.words) != (3,):
            raise ValueError(f"'words' must be (3,) or None; received {np.shape(self.words)}")

    @functools.cached_property
    def ceiling(self):
        """What no probability exceeds: `most`, else a bound of the share that fits among the
        trials' most likely results."""
        if self.most is not None or not self.trials:
            return 1.0 if self.most is None else self.most
        probability, fit = (
            np.concatenate([np.ravel(getattr(trial, name)) for trial in self.trials])
            for name in ("probability", "fit")
        )
        return quality.ceiling(probability.astype(np.float64), fit)

    def near(self, likeness):
        """These for a gallery to whose items those of the probes are alike, `(items,)` weights of
        `InGallery.likeness`: how often photos fit at one score differs by what they show."""
        known = self.strangers
        if known is None or likeness is None or len(likeness) != known.items:
            return self
        slope, bias = self.sentence
        line = Logistic(np.zeros(1), np.ones(1), np.array([slope]), bias)
        shift = line.missing_bias(known.score[:, None], known.fit, likeness[known.item])
        return dataclasses.replace(self, sentence=np.array([slope, bias + shift]))

    def others(self, scores, prior=None):
        """ρ, how likely items fit that are not the wanted one, shaped as `scores` `(Q, …)`; at
        most `ceiling`. `prior` `(Q,)` is π of short questions and NaN of others; None for none."""
        slope, bias = self.sentence
        odds = slope * np.asarray(scores, np.float64) + bias
        if prior is None or self.words is None:
            return np.minimum(expit(odds), self.ceiling)
        prior = np.reshape(prior, (-1,) + (1,) * (np.ndim(scores) - 1))
        slope, weight, bias = self.words
        short = slope * np.asarray(scores, np.float64) + weight * prior + bias
        return np.minimum(expit(np.where(np.isnan(prior), odds, short)), self.ceiling)

    def number(self, scores, prior=None):
        """Σ ρ over a whole gallery, `(Q,)`, by what a search says of it.

        The best 20 of the `QueryScores` are exact; the others are taken for a normal distribution
        with the mean and variance of the rest, cut off at the lowest of the best, and ρ is averaged
        over it by Gauss–Legendre quadrature. `prior` is as of `others`."""
        top, size, mean = scores.top, scores.size, scores.mean
        found = self.others(top, prior).sum(axis=1)
        rest = size - top.shape[1]
        some = np.maximum(rest, 1.0)
        middle = (size * mean - top.sum(axis=1)) / some
        squares = size * (scores.variance + mean**2) - (top**2).sum(axis=1)
        deviation = np.sqrt(np.maximum(squares / some - middle**2, 1e-12))
        end = np.minimum((top[:, -1] - middle) / deviation, REACH)
        half = np.maximum((end + REACH) / 2, 1e-6)
        z = -REACH + half[:, None] * (NODES + 1)
        density = WEIGHTS * np.exp(-0.5 * z**2)
        likely = self.others(middle[:, None] + deviation[:, None] * z, prior)
        return found + rest * (density * likely).sum(axis=1) / density.sum(axis=1)

    def cut(self, unfit, size):
        """The `Cut` at a share of shown results that do not fit; None where nothing can be
        promised, or no trial is of about this size.

        Learn-then-test, strictest threshold first, until one fails at 0.05: a t-test of one number
        per question, results that do not fit less `unfit` times those shown, with the variance of
        the trial's mean and of the next gallery's.

        Args:
            unfit: in (0, 1).
            size: number of items of the gallery that is asked.
        """
        unfit = checks.share(unfit, "unfit")
        near = [one for one in self.trials if 1 / NEAR_SIZE <= size / one.size <= NEAR_SIZE]
        if not near:
            return None
        trial = min(near, key=lambda one: abs(np.log(size / one.size)))
        probability, fit = (np.asarray(x, np.float64) for x in (trial.probability, trial.fit))
        found = None
        for threshold in np.unique(np.quantile(probability, 1 - np.geomspace(0.005, 1, 40)))[::-1]:
            shown = probability >= threshold
            left = (shown * (1 - fit)).sum(axis=1) - unfit * shown.sum(axis=1)
            count = int(shown.any(axis=1).sum())
            if count < max(10, LEAST_ANSWERED * len(shown)):
                continue
            error = left.std(ddof=1) * np.sqrt(1 / len(left) + 1 / trial.asked)
            if stdtr(len(left) - 1, left.mean() / max(error, 1e-12)) > TEST_LEVEL:
                break
            found = Cut(unfit, float(threshold), count / len(left), trial.size)
        return found


def prior_of(count, size):
    """π, the log odds that a photo of a bank of `size` holds what `count` of them hold."""
    return logit((np.asarray(count, np.float64) + 0.25) / (size + 0.5))


def priors(texts, bank):
    """π of short questions, NaN of sentences, `(Q,)`; of texts and a `CaptionBank`."""
    found = [prior_of(bank.count(text), bank.size) if is_short(text) else np.nan for text in texts]
    return np.array(found)


def presence_features(scores, reference, number):
    """What tells whether anything fits, `(Q, 5)`, of `QueryScores`."""
    # The best score; how far it is above `reference` `(Q,)`, the mean of the question's ten best
    # scores over the probes' items; and the logarithms of the gap to the second, of the gallery's
    # size and of `number` `(Q,)`, the items that are expected to fit.
    best = scores.top[:, 0]
    gap = best - scores.second + LEAST_GAP * np.sqrt(scores.variance)
    columns = [best, best - reference, np.log(np.maximum(gap, 1e-9)), np.log(scores.size)]
    return np.stack([*columns, np.log(number + LEAST_NUMBER)], axis=1)
