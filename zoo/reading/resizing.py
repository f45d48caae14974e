"""How pictures become squares, as a run or a preset describes it."""

from collections.abc import Mapping
from typing import Any

RESIZING = {"resize": "crop", "crop_fraction": 1.0}  # options of all pictures, their defaults


def resizing(description: Mapping[str, Any]) -> dict[str, Any]:
    """How the pictures of a description become squares.

    Whatever shows other pictures to a run's model (search, demo, serving) must do the same.

    Args:
        description: for `zoo.data.open`.

    Returns:
        `{"mode", "crop_fraction"}`, for `zoo.data.images.prepare`.
    """
    given = {**RESIZING, **{name: description[name] for name in RESIZING if name in description}}
    return {"mode": given["resize"], "crop_fraction": given["crop_fraction"]}
