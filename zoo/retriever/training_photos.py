"""Whether a gallery holds photos that the model was trained on: they attract every question."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from zoo.confidence import Probes
from zoo.confidence.probes import contents_hash

NAMED = 0.05  # share of training photos from which a gallery is named


def training_note(paths: Sequence[Any], probes: Probes | None) -> str | None:
    """A sentence on a gallery of which many photos were trained on, or None; the model's probes
    remember these by a hash of their contents."""
    if probes is None or not len(probes.trained_on) or not len(paths):
        return None
    found = np.array([contents_hash(path) for path in paths], np.uint64)
    count = int(np.isin(found, probes.trained_on).sum())
    if not count or count < NAMED * len(paths):
        return None
    return (
        f"{count:,} of {len(paths):,} photos were trained on: new questions will rarely find "
        "anything else"
    )
