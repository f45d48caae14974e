"""Galleries of photos that the model was trained on, which attract every question."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from halo_search.confidence import Probes
from halo_search.confidence.probes import contents_hash

NAMED = 0.05  # share of training photos from which a gallery is named


def trained_on(paths: Sequence[Any], probes: Probes | None) -> np.ndarray:
    """Which files the model was trained on, `(N,)` booleans, by hashes that its probes remember."""
    if probes is None or not len(probes.trained_on) or not len(paths):
        return np.zeros(len(paths), bool)
    hashes = np.array([contents_hash(path) for path in paths], np.uint64)
    return np.isin(hashes, probes.trained_on)


def training_note(paths: Sequence[Any], probes: Probes | None) -> str | None:
    """A sentence on a gallery of which many photos were trained on, or None."""
    count = int(trained_on(paths, probes).sum())
    if not count or count < NAMED * len(paths):
        return None
    return (
        f"{count:,} of {len(paths):,} photos were trained on: new questions will rarely find "
        "anything else"
    )
