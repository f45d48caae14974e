"""People's judgments of captions and photos (Flickr8k): what fits what."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from zoo.errors import InputError

FILE = "judgments.csv"


class Judged(NamedTuple):
    """A pair of a caption and a photo that somebody judged.

    Attributes:
        caption: the text.
        own: the file of the photo that the caption is of.
        image: the file of the photo that it was judged for.
        grades: of the experts who were asked, from 1 to 4.
        yes, no: how many of the crowd say so.
    """

    caption: str
    own: str
    image: str
    grades: list
    yes: int
    no: int


def judged(folder: str | Path) -> list[Judged]:
    """The rows of `judgments.csv` that somebody judged.

    Raises:
        InputError: if it is missing.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    with open(path, encoding="utf-8", newline="") as file:
        rows = [
            Judged(
                row["caption"],
                row["caption_of"],
                row["image"],
                [int(row[f"expert_{n}"]) for n in (1, 2, 3) if row[f"expert_{n}"]],
                int(row["yes"] or 0),
                int(row["no"] or 0),
            )
            for row in csv.DictReader(file)
        ]
    return [row for row in rows if row.grades or row.yes + row.no]


class Grades(NamedTuple):
    """One grade of a caption and a photo a row.

    Attributes:
        own: `(G,)`, the file of the photo that the caption is of.
        images: `(G,)`, the file of the photo that it was judged for.
        values: `(G,)`, an expert's grade from 1 to 4, or the share of the crowd that says yes.
    """

    own: np.ndarray
    images: np.ndarray
    values: np.ndarray

    @classmethod
    def read(cls, folder: str | Path) -> tuple["Grades", "Grades"]:
        """The experts' grades, each of the three a row as in CLIPScore, and the crowd's shares."""
        rows = judged(folder)
        experts = [(row.own, row.image, grade) for row in rows for grade in row.grades]
        crowd = [
            (row.own, row.image, row.yes / (row.yes + row.no)) for row in rows if row.yes + row.no
        ]
        return tuple(cls(*map(np.array, zip(*group, strict=True))) for group in (experts, crowd))


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
        found = []
        for row in judged(folder):
            fits = np.median(row.grades) >= 3 if row.grades else row.yes > row.no
            found.append((row.caption, row.own, row.image, bool(fits)))
        return cls(*map(np.array, zip(*found, strict=True)))

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
