"""Hubs of a gallery: whether correcting them pays, by a paired test, and a note on what remains."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from halo_search.confidence import Probes
from halo_search.confidence.insertion import own_rows
from halo_search.confidence.probes import OF_CORRECTED, direction_of
from halo_search.confidence.students_t import students_quantile
from halo_search.embeddings import kind
from halo_search.embeddings.arrays import as_arrays, length, take, thinned
from halo_search.embeddings.checks import halves, numbered
from halo_search.embeddings.csls import LEAST, CorrectedSpace, can_correct
from halo_search.embeddings.spaces import SPACES
from halo_search.index import Hub, Index, hubs, scoring
from halo_search.index.hubness import taken_by_few

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
        """The gain between two searches. `corrected` and `without`, bool `(Q,)`, say which
        questions found their own item; a group of questions counts once."""
        groups = numbered(groups, len(without))
        count = np.bincount(groups)
        shares = [np.bincount(groups, is_first) / count for is_first in (corrected, without)]
        gained = shares[0] - shares[1]
        error = gained.std(ddof=1) / np.sqrt(len(gained)) if len(gained) > 1 else 0.0
        is_more = False
        if error > 0:
            least = -students_quantile(LEVEL_OF_GAIN, len(gained) - 1)
            is_more = gained.mean() > error * least
        return cls(float(shares[0].mean()), float(shares[1].mean()), bool(is_more))


def bank_of(
    hubs: Literal["auto"] | bool,
    items: Callable[[], Any],
    similarity: Any,
    side: str,
    probes: Probes | None,
) -> tuple[Any, Gain | None]:
    """The questions by which the hubs of a gallery are corrected, or None, and the `Gain` where it
    was tested.

    Args:
        hubs: as of `Retriever.build`.
        items: returns embeddings of the gallery or of a sample.
        similarity: that ranks, as of `Index.build`.
        side: of the gallery.
        probes: of the model, or None.

    Raises:
        ValueError: if hubs have to be corrected, and there are no probes to correct by.
    """
    if not hubs or (probes is None and hubs == "auto"):
        return None, None
    if probes is None:
        raise ValueError("`hubs` must be False for a model without probes; received True")
    bank = probes.questions(side)
    if hubs is True:
        return bank, None
    # Of classes items have questions in common; and what else fits is learnt for corrected scores
    # where these find more in training.
    name = OF_CORRECTED + direction_of(side)
    if probes.by_class or (probes.fits and name not in probes.fits):
        return None, None
    try:
        gain = hub_gain(items(), scoring.resolve(similarity), side, probes)
    except ValueError:  # probes of another model, which the calibration will tell
        return None, None
    return (bank if gain is not None and gain.pays else None), gain


def hub_gain(items: Any, similarity: Any, side: str, probes: Probes) -> Gain | None:
    """The `Gain` of correcting hubs in a gallery, or a sample of it, by half of the probes; None
    where nothing can be corrected or tested."""
    items = thinned(as_arrays(items), MOST_ITEMS)
    name = similarity.space_for(kind(items))
    space = None if name is None else SPACES[name]
    bank = probes.questions(side)
    score = similarity.scorer()
    is_enough = length(bank) >= LEAST and length(items) > 1 and not probes.by_class
    if not is_enough or not can_correct(space, score):
        return None
    queries, wanted, rows, groups = _half_of_pairs(probes.pairs(direction_of(side)))
    corrected = CorrectedSpace.of(space, score, bank, items)
    galleries = [Index.build(items, similarity, side=side, hubs=by) for by in (corrected, None)]
    is_first = [gallery.probe(queries, wanted, rows).correct for gallery in galleries]
    return Gain.of(*is_first, groups)


def _half_of_pairs(pairs):
    """`(queries, items, rows, groups)` of half of the probes: Q queries, the items that any of them
    wants, rows `(Q, n)` of these or −1, and `(Q,)` which queries belong together."""
    groups = numbered(pairs["groups"], length(pairs["queries"]))
    asked = halves(groups, 0)[0]
    matches = pairs["matches"][asked]
    wanted = np.flatnonzero(matches.any(axis=0))
    rows = own_rows(matches[:, wanted], len(asked), len(wanted))
    return take(pairs["queries"], asked), take(pairs["own"], wanted), rows, groups[asked]


def probed_hubs(index: Any, side: str, probes: Probes | None) -> list[Hub]:
    """The hubs among the probes' questions, see `halo_search.index.hubs`; none without probes that
    fit the index."""
    return _by_questions(hubs, index, side, probes) or []


def hub_note(
    index: Any,
    side: str,
    probes: Probes | None,
    names_of: Callable[[np.ndarray], Sequence[str] | None],
) -> str | None:
    """A sentence where a hub, or a few items of which none alone need be a hub, answer many of the
    probes' questions; else None."""
    worst = probed_hubs(index, side, probes)
    if worst:
        hub, others = worst[0], ""
        (name,) = names_of(np.array([hub.id])) or [f"item {hub.id}"]
        if worst[1:]:
            others = f", and {len(worst) - 1:,} more items likewise"
        return (
            f"{name} is among the first {hub.first} answers of {hub.share:.0%} of "
            f"the probes' questions{others}: look whether it belongs there"
        )
    taken = _by_questions(taken_by_few, index, side, probes)
    if taken is None:
        return None
    few, share = taken
    return f"{few:,} of {len(index):,} items are first for {share:.0%} of the probes"


def _by_questions(search, index, side, probes):
    """What a function of an index and questions returns for those of the probes; None where there
    are none, or they do not fit the index."""
    if probes is None:
        return None
    try:
        return search(index, probes.questions(side))
    except ValueError:  # an index of another similarity
        return None
