"""How far a probability may be off where the gallery's kinds are few."""

import dataclasses

import numpy as np
from scipy.special import expit, logit, stdtrit

from zoo.confidence import checks


@dataclasses.dataclass(frozen=True)
class KindSpread:
    """The standard deviation of a shift that all log odds of one gallery have in common.

    Kinds differ in difficulty by more than their scores tell. The probes are of K kinds drawn from
    all that there are, the gallery has C others, and so what is said of it is off by the mean of
    either. In a list of single photos each photo is a kind.

    Attributes:
        deviation: of the shift, in log odds.
        kinds: of the probes, K.

    Reference: Liang and Zeger, "Longitudinal data analysis using generalized linear models",
        Biometrika 1986, for the error of a mean over clusters; the kinds of the gallery add their
        own, by the method of moments.
    """

    deviation: float
    kinds: int

    @classmethod
    def of(cls, probability, correct, groups, kinds, num_kinds):
        """Of probes.

        Args:
            probability: `(Q,)`, said of each.
            correct: `(Q,)` booleans.
            groups: `(Q,)` numbers of `zoo.confidence.groups.numbered`; each counts once.
            kinds: `(Q,)` numbers from 0, what each wants.
            num_kinds: of the gallery, about.

        Returns:
            A `KindSpread`; None of fewer than two kinds.
        """
        count = int(kinds.max()) + 1
        if count < 2:
            return None
        weights = 1 / np.bincount(groups)[groups]
        weights /= weights.sum()
        left = weights * (correct - probability)
        curve = weights * probability * (1 - probability)
        by_kind, slopes = np.bincount(kinds, left), np.bincount(kinds, curve)
        own = count / (count - 1) * (by_kind**2).sum() / curve.sum() ** 2
        # What a kind's questions have in common is seen where it has several, of several groups or
        # of one. Where it has one, all that is left may be of the kind.
        common, weight = (by_kind**2).sum(), (slopes**2).sum()
        for parts in (_pairs(groups, kinds), np.arange(len(left))):
            if parts.max() >= count:
                common -= (np.bincount(parts, left) ** 2).sum()
                weight -= (np.bincount(parts, curve) ** 2).sum()
                break
        between = max(0.0, common) / weight
        return cls(float(np.sqrt(own + between / max(1.0, num_kinds))), count)

    def with_size(self, slope, error):
        """This, and what a wrong number of items a kind adds.

        Args:
            slope: of the log odds, by the logarithm of the number.
            error: relative standard error of the number.
        """
        return dataclasses.replace(self, deviation=float(np.hypot(self.deviation, slope * error)))

    def interval(self, probability, error=0.1):
        """`(low, high)`, `(Q,)` each: the share of such questions that is right lies between.

        Args:
            probability: `(Q,)` that was said.
            error: share of galleries in which it does not.

        Raises:
            ValueError: if `error` is not in (0, 1).
        """
        width = stdtrit(self.kinds - 1, 1 - checks.share(error, "error") / 2) * self.deviation
        odds = logit(np.asarray(probability, np.float64))
        return expit(odds - width), expit(odds + width)


def numbered_kinds(matches):
    """Of `(Q, M)` booleans, who wants what: questions that want the same have the same number."""
    return np.unique(np.packbits(matches, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _pairs(groups, kinds):
    """Numbers from 0 of each group within each kind."""
    return np.unique(np.stack([groups, kinds]), axis=1, return_inverse=True)[1].reshape(-1)
