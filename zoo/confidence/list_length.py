"""How long the list of one question has to be: a conformal k that goes with its confidence."""

import dataclasses

import numpy as np

from zoo.confidence.groups import conformal_quantile

WINDOW = 0.2  # share of the probes, those nearest in confidence, of which a length is taken
LEAST = 20  # of them at least
# Weights of that length beside the one of all probes, as logarithms. 1 gives every tenth of
# confidence the same coverage and longer lists on average, 0 one length for all. The least that
# keeps each tenth of the probes this near to what is promised is taken.
LOCAL, NEAR = (0.5, 0.75, 1.0), 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class ListLength:
    """k(c) = exp(a(c) + b), c the confidence, of which the first k answers hold what is wanted.

    a(c) is between the logarithm of the length that 1 − error of all probes need and that of those
    nearest to c. b is the conformal quantile of log rank − a over all probes, so that the k of a
    new question suffices with probability 1 − error, whatever a is.

    Attributes:
        confidence: `(n,)`, of the probes, rising.
        shape: `(n,)`, a at each of them.
        shift: b; infinity where the probes are too few.
        most: what is returned where nothing can be promised.

    Reference: Papadopoulos et al., "Inductive Confidence Machines for Regression", 2002, of
        normalised residuals; Romano, Patterson and Candès, "Conformalized Quantile Regression",
        NeurIPS 2019.
    """

    confidence: np.ndarray
    shape: np.ndarray
    shift: float
    most: int

    @classmethod
    def fit(cls, ranks, confidence, groups, error, most):
        """Of probes.

        Args:
            ranks: `(n,)`, of what they want, 1 = first.
            confidence: `(n,)`, any number that is greater for surer answers.
            groups: `(n,)`, see `zoo.confidence.groups.numbered`.
            error: in (0, 1).
            most: number of items + 1.
        """
        order = np.argsort(confidence, kind="stable")
        confidence, groups = confidence[order], groups[order]
        logs, count = np.log(np.minimum(ranks[order], most)), len(order)
        width = min(count, max(LEAST, int(WINDOW * count)))
        windows = np.lib.stride_tricks.sliding_window_view(logs, width)
        local = np.quantile(windows, 1 - error, axis=1, method="inverted_cdf")
        middles = np.arange(len(local)) + (width - 1) / 2
        whole = np.quantile(logs, 1 - error, method="inverted_cdf")
        local = np.interp(np.arange(count), middles, local)
        for weight in LOCAL:
            shape = weight * local + (1 - weight) * whole
            shift = conformal_quantile(logs - shape, error, groups)
            held = np.array_split(logs <= shape + shift + 1e-9, 10) if count >= 200 else []
            if all(part.mean() >= 1 - error - NEAR for part in held):
                break
        return cls(confidence, shape, shift, most)

    def __call__(self, confidence):
        """The k of some questions by their confidence, int64."""
        if not np.isfinite(self.shift):
            return np.full(np.shape(confidence), self.most)
        length = np.exp(np.interp(confidence, self.confidence, self.shape) + self.shift)
        return np.clip(np.floor(length + 1e-6), 1, self.most).astype(np.int64)
