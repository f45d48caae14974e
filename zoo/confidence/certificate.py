"""The threshold from which a calibration's answers are certified."""

import dataclasses

from zoo.confidence import checks


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What `certified_threshold` promises of a `Confidence`, to travel with it.

    ```python
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(400, 20))
    correct = similarity.max(axis=1) > 1.5
    confidence = zoo.confidence.Confidence.fit(similarity[:200], correct[:200])
    certified = confidence.certified(similarity[200:], correct[200:], risk=0.2, failure=0.1)
    certified.certificate.threshold  # answer from this probability on
    ```

    Attributes:
        risk: the share of wrong answers among those given, at most.
        failure: how often the promise may fail, over certifying queries.
        threshold: the probability from which a query is answered; None where nothing could be
            promised.
        num_queries: how many queries certified it.

    Raises:
        ValueError: if a share or the threshold is out of range.
    """

    risk: float
    failure: float
    threshold: float | None
    num_queries: int

    def __post_init__(self):
        checks.share(self.risk, "risk")
        checks.share(self.failure, "failure")
        checks.whole(self.num_queries, "num_queries")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ValueError(f"`threshold` must be in [0, 1] or None; received {self.threshold}")

    def reason(self, probability):
        """Why a query of this probability is declined, in words; None if it is answered."""
        if self.threshold is None:
            return (
                f"no threshold could be certified at which at most {100 * self.risk:.0f} % of the "
                "answers are wrong"
            )
        if probability >= self.threshold:
            return None
        return (
            f"its probability is below {self.threshold:.2f}, from where on at most "
            f"{100 * self.risk:.0f} % of the answers are wrong"
        )
