"""The 170 freely licensed photos that come with the package, to ask about at once.

No preset was trained on them.
"""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "photos"
CREDITS = "CREDITS"
COLUMNS = ("file", "flickr_id", "licence", "licence_url", "page")


class Credit(NamedTuple):
    """Who may do what with a photo.

    Attributes:
        flickr_id: of the photo.
        licence: its name, `"CC BY 2.0"`.
        licence_url: the text of the licence.
        page: the photo's page on Flickr, which names its author.
    """

    flickr_id: str
    licence: str
    licence_url: str
    page: str


def packaged_photos() -> list[Path]:
    """The photos that come with the package, JPEG files of at most 320 pixels, by name.

    ```python
    retriever = zoo.Retriever.build(zoo.from_preset("photos_pfe"), zoo.data.packaged_photos())
    ```

    Returns:
        170 paths. Their names are those of COCO's images.
    """
    return sorted(FOLDER.glob("*.jpg"))


def photo_credits() -> dict[str, Credit]:
    """The `Credit` of each packaged photo by the name of its file, as `photos/CREDITS` says."""
    lines = (FOLDER / CREDITS).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {name: Credit(*rest) for name, *rest in rows[1:]}
