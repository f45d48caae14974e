"""One split of a data set: its records, and how its images are read."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoo.data.records import Records
from zoo.data.sources import Pictures
from zoo.errors import InputError
from zoo.reading import images


@dataclass(frozen=True, eq=False)
class Split:
    """One split of a data set, and how its images are read.

    ```python
    split = zoo.data.open({"loader": "cub", "root": "CUB_200_2011", "image_size": 64}, "test")
    split.records.summary()
    split.picture(0)  # uint8 (64, 64, 3)
    ```

    Attributes:
        records: its `Records`.
        source: of its images or features, see `zoo.data.sources`.
        picture: function from an image's index to its pixels, or None where there are none.
        true_matches: `(M,)`, how many of the split's images each caption is true of, where it is
            known.
        truth: bool `(N, M)`, whether each caption is true of each image, where it is known.
    """

    records: Records
    source: Any
    picture: Callable | None = None
    true_matches: np.ndarray | None = None
    truth: np.ndarray | None = None

    def with_records(self, records: Records) -> "Split":
        """This split with other captions of the same images."""
        return dataclasses.replace(self, records=records)


def pictures(
    records: Records,
    image_size: int,
    split: str = "test",
    resize: str = "crop",
    crop_fraction: float = 1.0,
) -> Split:
    """A `Split` of pictures. Those of the test are read once, so they are not kept in memory.

    Args:
        records: whose pictures.
        image_size, resize, crop_fraction: see `zoo.data.images.resize`, whose `mode` is `resize`.
        split: of the records.

    Raises:
        InputError: if the resize is unknown, or the fraction not in (0, 1].
    """
    if resize not in images.RESIZES:
        raise InputError(
            f"data: `resize` must be one of {', '.join(images.RESIZES)}; received {resize!r}"
        )
    if not isinstance(crop_fraction, int | float) or not 0 < crop_fraction <= 1:
        raise InputError(f"data: `crop_fraction` must be in (0, 1]; received {crop_fraction!r}")
    cache = False if split == "test" else None
    source = Pictures(records, image_size, resize, crop_fraction, cache)
    return Split(records, source, source.picture)
