"""People's judgments of captions and photos (Flickr8k): what fits what."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from zoo.errors import InputError

FILE = "judgments.csv"


class Judgments(NamedTuple):
    """Pairs of a caption and a photo that people judged.

    Attributes:
        captions: `(P,)` strings.
        own: `(P,)`, the file of the photo that each caption is of.
        images: `(P,)`, the file of the photo that it was judged for.
        fits: `(P,)` booleans: the experts' median grade is at least 3, or, where no expert was
            asked, more of the crowd say yes than no.
    """

    captions: np.ndarray
    own: np.ndarray
    images: np.ndarray
    fits: np.ndarray

    @classmethod
    def read(cls, folder: str | Path) -> "Judgments":
        """Reads `judgments.csv`.

        Raises:
            InputError: if it is missing.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise InputError(f"{path}: there is no such file")
        rows = []
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                grades = [int(row[f"expert_{n}"]) for n in (1, 2, 3) if row[f"expert_{n}"]]
                yes, no = int(row["yes"] or 0), int(row["no"] or 0)
                if grades or yes + no:
                    fits = np.median(grades) >= 3 if grades else yes > no
                    rows.append((row["caption"], row["caption_of"], row["image"], bool(fits)))
        captions, own, images, fits = zip(*rows, strict=True)
        return cls(np.array(captions), np.array(own), np.array(images), np.array(fits))

    def matrix(self, own: list[str], images: list[str]) -> np.ndarray:
        """`(Q, N)`: 1 and 0 as judged, NaN where nobody did; a caption fits its own photo unless
        people say no.

        Args:
            own: Q files, whose captions are asked.
            images: N files.
        """
        row = {name: place for place, name in enumerate(own)}
        column = {name: place for place, name in enumerate(images)}
        found = np.full((len(own), len(images)), np.nan)
        for name, image, fits in zip(self.own, self.images, self.fits, strict=True):
            if name in row and image in column:
                found[row[name], column[image]] = fits
        for name, place in row.items():
            if name in column and np.isnan(found[place, column[name]]):
                found[place, column[name]] = 1.0
        return found
