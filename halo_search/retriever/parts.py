"""What a retriever is made of: its probes, and the bank that corrects hubs."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from halo_search.confidence import Probes
from halo_search.confidence.probes import OF_CORRECTED, contents_hash, direction_of
from halo_search.embeddings.arrays import length
from halo_search.embeddings.checks import numbered
from halo_search.index import scoring
from halo_search.retriever.hubs import hub_gain

NAMED = 0.05  # share of training photos from which a gallery is named
HUBS = {"auto": "auto", "on": True, "off": False}  # of commands, as of `build`


def own_probes(side, queries, own, groups, before):
    """`Probes` of a user's pairs, with what the model's probes know beside them."""
    if length(queries) != length(own):
        raise ValueError(
            f"`own` must hold one item a question, {length(queries)}; received {length(own)}"
        )
    sides = (queries, own) if side == "captions" else (own, queries)
    more, rows = {}, np.arange(length(own))
    if before is not None:  # what is known of its own items is not of these
        fits = {n: dataclasses.replace(one, strangers=None) for n, one in before.fits.items()}
        more = {"known": before.known, "fits": fits}
    if side == "images" and groups is not None:
        more["caption_images"] = numbered(groups, length(queries))
    return Probes.of(*sides, rows, rows, source="pairs of your own", **more)


def bank_of(hubs: Literal["auto"] | bool, items: Callable, similarity: Any, side: str, probes: Any):
    """`(questions by which hubs are corrected or None, the `Gain` or None)`; `items()` gives
    embeddings of the gallery or a sample. A ValueError if there are no probes to correct by."""
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


def trained_on(paths: Sequence[Any], probes: Probes | None) -> np.ndarray:
    """Which files the model was trained on, `(N,)` booleans, by hashes that its probes remember."""
    if probes is None or not len(probes.trained_on) or not len(paths):
        return np.zeros(len(paths), bool)
    found = np.array([contents_hash(path) for path in paths], np.uint64)
    return np.isin(found, probes.trained_on)


def training_note(paths: Sequence[Any], probes: Probes | None) -> str | None:
    """A sentence on a gallery of which many photos were trained on, or None."""
    count = int(trained_on(paths, probes).sum())
    if not count or count < NAMED * len(paths):
        return None
    return (
        f"{count:,} of {len(paths):,} photos were trained on: new questions will rarely find "
        "anything else"
    )
