"""Whether correcting hubs pays in a gallery, by a paired test over half of the probes."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from halo_search.confidence.insertion import own_rows
from halo_search.confidence.probes import direction_of
from halo_search.embeddings import kind
from halo_search.embeddings.arrays import as_arrays, length, take, thinned
from halo_search.embeddings.checks import halves, numbered
from halo_search.embeddings.csls import LEAST, CorrectedSpace, can_correct
from halo_search.embeddings.spaces import SPACES
from halo_search.index import Index

LEVEL_OF_GAIN = 0.1  # of the test
MOST_ITEMS = 5000  # that are looked at


class Gain(NamedTuple):
    """The shares of questions that find their own item first, hubs corrected and not, and whether
    that is more by a paired test at `LEVEL_OF_GAIN`."""

    corrected: float
    without: float
    pays: bool

    def __str__(self):
        what = "corrected" if self.pays else "not corrected"
        return (
            f"hubs {what}: {self.corrected:.1%} of probes find their own first with the "
            f"correction, {self.without:.1%} without"
        )

    @classmethod
    def of(cls, corrected, without, groups=None):
        """Of `(Q,)` booleans each, and the group of each question; a group counts once."""
        groups = numbered(groups, len(without))
        count = np.bincount(groups)
        shares = [np.bincount(groups, one) / count for one in (corrected, without)]
        gained = shares[0] - shares[1]
        error = gained.std(ddof=1) / np.sqrt(len(gained)) if len(gained) > 1 else 0.0
        is_more = error > 0 and gained.mean() > error * -stdtrit(len(gained) - 1, LEVEL_OF_GAIN)
        return cls(float(shares[0].mean()), float(shares[1].mean()), bool(is_more))


def hub_gain(items, similarity, side, probes):
    """The `Gain` of correcting hubs in a gallery, or a sample of it, by half of the probes; None
    where nothing can be corrected or tested."""
    items = thinned(as_arrays(items), MOST_ITEMS)
    name = similarity.space_for(kind(items))
    space = None if name is None else SPACES[name]
    bank = probes.questions(side)
    score = similarity.scorer()
    enough = length(bank) >= LEAST and length(items) > 1 and not probes.by_class
    if not enough or not can_correct(space, score):
        return None
    told = probes.pairs(direction_of(side))
    groups = numbered(told["groups"], length(told["queries"]))
    asked = halves(groups, 0)[0]
    matches = told["matches"][asked]
    wanted = np.flatnonzero(matches.any(axis=0))
    queries, own = take(told["queries"], asked), take(told["own"], wanted)
    rows = own_rows(matches[:, wanted], len(asked), len(wanted))
    hubs = CorrectedSpace.of(space, score, bank, items)
    galleries = [Index.build(items, similarity, side=side, hubs=one) for one in (hubs, None)]
    first = [one.probe(queries, own, rows).correct for one in galleries]
    return Gain.of(*first, groups[asked])
