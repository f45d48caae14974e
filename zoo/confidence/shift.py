"""Whether new queries are like those of a calibration: a two-sample test, and what follows."""

import dataclasses

import numpy as np
from scipy.stats import ks_2samp

from zoo.confidence import checks

LEAST_QUERIES = 20  # below which no test would see anything


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a calibration can still promise.

    Attributes:
        state: `"holds"`, `"drifted"`, `"other gallery"` or `"too few queries"`.
        sentence: the same for a reader.
        p_value: of the drift test, at most 1, or None where it was not made.
        feature: the feature that differs most, or None.
    """

    state: str
    sentence: str
    p_value: float | None = None
    feature: str | None = None

    @property
    def holds(self):
        """Whether probabilities and guarantees may be used."""
        return self.state == "holds"


def drift_test(reference, features, names):
    """Tests whether two samples of queries come from one distribution.

    The greatest of the two-sample Kolmogorov–Smirnov statistics of all features, with Bonferroni's
    correction: with exchangeable queries p ≤ a happens in at most a share a of the cases, whatever
    the dependence between features. It sees a change of the features, not one of what is right at
    equal features; without the truth nothing can.

    Args:
        reference: `(n, features)` of the calibration.
        features: `(m, features)` of new queries.
        names: of the features.

    Returns:
        `(p, name of the feature that differs most)`.

    Reference: Rabanser, Günnemann and Lipton, "Failing Loudly: An Empirical Study of Methods for
        Detecting Dataset Shift", NeurIPS 2019, which recommends this test with few dimensions.
    """
    values = [
        ks_2samp(reference[:, i], features[:, i], method="auto").pvalue for i in range(len(names))
    ]
    lowest = int(np.argmin(values))
    return min(1.0, float(values[lowest]) * len(names)), names[lowest]


def check(confidence, features, gallery, level):
    """The `Verdict` on new queries, see `Confidence.check`.

    Raises:
        ValueError: if `level` is not between 0 and 1.
    """
    level = checks.share(level, "level")
    made_of = f"calibrated on {confidence.num_queries:,} queries"
    if confidence.gallery is not None and gallery is not None:
        difference = confidence.gallery.difference(gallery)
        if difference is not None:
            return Verdict(
                "other gallery",
                f"This is another gallery than the one it was {made_of} of: {difference}. Nothing "
                "can be promised; calibrate on this gallery.",
            )
    if len(features) < LEAST_QUERIES:
        return Verdict(
            "too few queries",
            f"{len(features)} queries are too few to see whether they are like those it was "
            f"{made_of} of; its promises hold only if they are.",
        )
    p_value, feature = drift_test(confidence.reference, features, confidence.names)
    if p_value <= level:
        return Verdict(
            "drifted",
            f"These queries are not like those it was {made_of} of: {feature} differs "
            f"(p = {p_value:.1g}). No probability and no guarantee can be promised; calibrate on "
            "queries like these.",
            p_value,
            feature,
        )
    unseen = (
        ""
        if confidence.gallery is not None and gallery is not None
        else (", if the gallery is the same")
    )
    return Verdict(
        "holds",
        f"It was {made_of} and these are like them (p = {p_value:.2g}): probabilities and "
        f"guarantees hold{unseen}.",
        p_value,
        feature,
    )
