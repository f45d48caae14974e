"""The 170 freely licensed photos of the package, on which no preset was trained."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from halo_search.files.text_files import read_lines

FOLDER = Path(__file__).parent
CREDITS, CAPTIONS = "CREDITS", "CAPTIONS"
VECTORS = "vectors.npz"
COLUMNS = ("file", "flickr_id", "licence", "licence_url", "page")


class Credit(NamedTuple):
    """Who may do what with a photo: its id and page on Flickr, and its licence with its address."""

    flickr_id: str
    licence: str
    licence_url: str
    page: str


def packaged_photos() -> list[Path]:
    """The 170 photos of the package, JPEG files of at most 320 pixels, by the name of COCO's image.

    ```python
    retriever = halo_search.Retriever.build("photos_pfe", halo_search.packaged_photos())
    ```
    """
    return sorted(FOLDER.glob("*.jpg"))


def packaged_captions() -> dict[str, list[str]]:
    """COCO's five captions (CC BY 4.0) of each packaged photo, by the name of its file.

    ```python
    halo_search.packaged_captions()["000000000285.jpg"][0]
    ```
    """
    found = {}
    for line in read_lines(FOLDER / CAPTIONS):
        if line and not line.startswith("#"):
            name, text = line.split("\t")
            found.setdefault(name, []).append(text)
    return found


def photo_credits() -> dict[str, Credit]:
    """The `Credit` of each packaged photo by the name of its file, as `photos/CREDITS` says."""
    lines = read_lines(FOLDER / CREDITS)
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {name: Credit(*rest) for name, *rest in rows[1:]}


def packaged_vectors(weights_sha256: str) -> dict[str, np.ndarray] | None:
    """Embeddings of `packaged_photos()` by the model of this hash, float32 `(170, dim)`, kept in
    half precision; None for any other model."""
    path = FOLDER / VECTORS
    if not path.is_file():
        return None
    with np.load(path) as stored:
        if str(stored["weights_sha256"]) != weights_sha256:
            return None
        names = (name for name in stored.files if name != "weights_sha256")
        return {name: stored[name].astype(np.float32) for name in names}
