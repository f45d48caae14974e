"""What probes tell of one gallery: how long a list has to be, and how absence looks."""

import dataclasses

import numpy as np

from zoo.confidence import checks
from zoo.confidence.absence import absence_p_values
from zoo.confidence.groups import one_of_each
from zoo.confidence.guarantees import score_threshold, smallest_k
from zoo.confidence.list_length import ListLength
from zoo.confidence.logistic import Logistic

KEPT = 2000  # values of each kind that travel with a calibration
PENALTY = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class GalleryPromises:
    """Ranks, scores and confidences of probes in front of one gallery.

    Made by `zoo.confidence.calibrate_on`; `Confidence` asks it.

    Attributes:
        size: number of items of the gallery.
        ranks: `(n,)`, of the probes whose rank was counted, 1 = first.
        logits: `(n,)`, log odds of the confidence in the answer to each of them.
        groups: `(n,)`, numbers of their groups.
        match_scores: `(n,)`, scores of their own items, higher is better.
        matcher: a `Logistic` of the confidence's features, which tells probes with their own item
            in the gallery from those without.
        present: `(p,)`, sorted log odds by it of probes with their own item, one a group.
        absent: `(a,)`, sorted, of probes without it.
    """

    size: int
    ranks: np.ndarray
    logits: np.ndarray
    groups: np.ndarray
    match_scores: np.ndarray
    matcher: Logistic
    present: np.ndarray
    absent: np.ndarray
    _lengths: dict = dataclasses.field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, probed, logits, inside, outside, groups, learning, seed=0):
        """Of probes.

        Args:
            probed: a `zoo.confidence.insertion.Probed`.
            logits: `(Q,)`, log odds of the confidence in each answer.
            inside, outside: `(Q, features)`, over the gallery with the own items and without.
            groups: `(Q,)` numbers of `zoo.confidence.groups.numbered`.
            learning: rows of the probes that the matcher may learn from.
            seed: of what is kept.
        """
        rng = np.random.default_rng(seed)
        counted = np.flatnonzero(~np.isnan(probed.ranks))
        counted = np.sort(rng.permutation(counted)[:KEPT])
        # Elsewhere the gallery without the own item is not known; of those whose item is far
        # behind it is not seen whether it is there.
        missing = ~probed.is_there if probed.is_there.mean() < 0.5 else np.zeros(len(groups), bool)
        both = np.concatenate([inside[learning], outside[learning][missing[learning]]])
        is_in = np.arange(len(both)) < len(learning)
        matcher = Logistic.fit(both, is_in, PENALTY) if not is_in.all() else None
        others = np.setdiff1d(np.arange(len(groups)), learning)
        others = others if len(others) else learning
        single = others[one_of_each(np.unique(groups[others], return_inverse=True)[1], rng)]
        single = rng.permutation(single)[:KEPT]
        present = absent = np.empty(0)
        if matcher is not None:
            present = matcher.logit(inside[single])
            absent = matcher.logit(outside[single[missing[single]]])
        return cls(
            probed.size,
            probed.ranks[counted],
            _stored(logits[counted]),
            np.unique(groups[counted], return_inverse=True)[1],
            # What a search does not find has no score, and is below every other.
            _stored(np.maximum(probed.match_scores[counted], np.finfo(np.float32).min)),
            matcher,
            np.sort(_stored(present)),
            np.sort(_stored(absent)),
        )

    def first_k(self, error, num_items=None):
        """See `Confidence.first_k`; `num_items` of a gallery that has grown since."""
        ranks = np.minimum(self.ranks, self.size + 1)
        return smallest_k(ranks, error, self.size, self.groups, num_items)

    def list_lengths(self, error, logits):
        """A k for each query by its log odds, `(Q,)` int64; see `ListLength`."""
        return self.list_length(error)(_stored(logits))

    def list_length(self, error):
        """The `ListLength` of an error."""
        error = checks.share(error, "error")
        if error not in self._lengths:
            self._lengths[error] = ListLength.fit(
                self.ranks, self.logits, self.groups, error, self.size + 1
            )
        return self._lengths[error]

    def score_threshold(self, error):
        """See `Confidence.score_threshold`."""
        return score_threshold(self.match_scores, error, self.groups)

    def presence(self, features):
        """p-values of "something matches", `(Q,)`: small for queries unlike those with a match.

        Raises:
            ValueError: if the gallery held all probes' own items.
        """
        values = _stored(self._matcher().logit(features))
        at_most = np.searchsorted(self.present, values, side="right")
        return (1 + at_most) / (len(self.present) + 1)

    def absence(self, features, num_items=None):
        """p-values of "nothing matches", `(Q,)`; see `zoo.confidence.absence_p_values`.

        Raises:
            ValueError: as `presence`.
        """
        values = _stored(self._matcher().logit(features))
        num_items = self.size if num_items is None else checks.whole(num_items, "num_items")
        return absence_p_values(values, self.absent, max(1.0, num_items / self.size))

    def _matcher(self):
        if self.matcher is None or not len(self.absent):
            raise ValueError("the gallery holds every probe's own item: absence was not seen")
        return self.matcher


def _stored(values):
    """In the precision of a file, so that reading a calibration again changes nothing."""
    return np.asarray(values, np.float32).astype(np.float64)
