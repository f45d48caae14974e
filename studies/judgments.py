"""People's judgments of captions and photos (Flickr8k): what fits what."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halo_search.errors import InputError

FILE = "judgments.csv"


class Judged(NamedTuple):
    """A pair of a caption and a photo that somebody judged."""

    caption: str  # the text
    photo: str  # the file of the photo that the caption is of
    image: str  # the file of the photo that it was judged for
    grades: list  # of the experts who were asked, from 1 to 4
    yes: int  # how many of the crowd say so
    no: int  # how many of the crowd say so


def judged(folder: str | Path) -> list[Judged]:
    """The rows of `judgments.csv` that somebody judged."""
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
    """One grade of a caption and a photo a row."""

    photo: np.ndarray  # `(G,)`, the file of the photo that the caption is of
    images: np.ndarray  # `(G,)`, the file of the photo that it was judged for
    values: np.ndarray

    @classmethod
    def read(cls, folder: str | Path) -> tuple["Grades", "Grades"]:
        """The experts' grades, each of the three a row as in CLIPScore, and the crowd's shares."""
        rows = judged(folder)
        experts = [(row.photo, row.image, grade) for row in rows for grade in row.grades]
        crowd = [
            (row.photo, row.image, row.yes / (row.yes + row.no)) for row in rows if row.yes + row.no
        ]
        return tuple(cls(*map(np.array, zip(*group, strict=True))) for group in (experts, crowd))


class Judgments(NamedTuple):
    """Pairs of a caption and a photo that people judged."""

    captions: np.ndarray  # `(P,)` strings
    photo: np.ndarray  # `(P,)`, the file of the photo that each caption is of
    images: np.ndarray  # `(P,)`, the file of the photo that it was judged for
    fits: np.ndarray

    @classmethod
    def read(cls, folder: str | Path) -> "Judgments":
        """Reads `judgments.csv`."""
        rows = []
        for row in judged(folder):
            fits = np.median(row.grades) >= 3 if row.grades else row.yes > row.no
            rows.append((row.caption, row.photo, row.image, bool(fits)))
        return cls(*map(np.array, zip(*rows, strict=True)))

    def matrix(self, photos: list[str], images: list[str]) -> np.ndarray:
        """`(Q, N)`: 1 and 0 as judged, NaN where nobody did; a caption fits its own photo unless
        people say no.
        """
        row = {name: place for place, name in enumerate(photos)}
        column = {name: place for place, name in enumerate(images)}
        grades = np.full((len(photos), len(images)), np.nan)
        for name, image, fits in zip(self.photo, self.images, self.fits, strict=True):
            if name in row and image in column:
                grades[row[name], column[image]] = fits
        for name, place in row.items():
            if name in column and np.isnan(grades[place, column[name]]):
                grades[place, column[name]] = 1.0
        return grades
