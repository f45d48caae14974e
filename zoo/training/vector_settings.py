"""The flags of runs on vectors that exist."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from zoo.cli import setting
from zoo.files.vector_files import located
from zoo.training.settings import RunSettings


@dataclass(frozen=True, kw_only=True)
class VectorSettings(RunSettings):
    """Files are `FILE` or `FILE:NAME`, see `zoo.data.vectors`.

    ```python
    settings = zoo.training.VectorSettings(images="images.npy", captions="captions.npz:captions")
    settings.data()["loader"]  # "vectors"
    ```
    """

    annotations_dir: ClassVar[None] = None

    images: str | None = setting(None, "vectors of images (N, dim); without: those of Toy Birds")
    captions: str | None = setting(None, "vectors of captions (M, dim)")
    pairs: str | None = setting(None, "rows (P, 2) of image and caption; default: i with i")
    labels: str | None = setting(None, "class of each image, which its captions share")
    splits: str | None = setting(None, "train, validation or test of each image; default: random")
    texts: str | None = setting(None, "what the captions say, for pages and lists")
    paths: str | None = setting(None, "paths or addresses of the pictures, likewise")
    held_out: Literal["test", "val"] = setting(
        "test", "the split to evaluate on; choose settings on val"
    )
    select: Literal["best", "last"] = setting(
        "best", "whose weights to keep: of the epoch with the best validation, or of the last"
    )

    def __post_init__(self):
        if (self.images is None) != (self.captions is None):
            raise ValueError("--images and --captions must be given together")
        if self.data_dir is not None and self.images is None:
            raise ValueError("--data-dir is the folder of --images and --captions; give them too")

    def data(self):
        """The description of the data for `zoo.data.open`; files by their whole paths."""
        names = ("images", "captions", "pairs", "labels", "splits", "texts", "paths")
        given = {name: getattr(self, name) for name in names}
        return {
            "loader": "vectors",
            **{name: _whole(spec, self.data_dir) for name, spec in given.items() if spec},
            "held_out": self.held_out,
            "seed": self.seed,
        }


def _whole(spec, folder):
    if folder is not None:
        spec = folder / spec
    path, name = located(spec)
    whole = Path(path).resolve()
    return str(whole) if name is None else f"{whole}:{name}"
