"""PCME on COCO, or on Toy Scenes when no data are given.

    python recipes/pcme_coco.py                                  # Toy Scenes
    python recipes/pcme_coco.py --data-dir coco --image-weights imagenet \\
        --glove glove.840B.300d.txt --annotations-dir eccv_caption

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021, tables 3, E.4 and E.5.
`--data-dir` holds Karpathy's `dataset_coco.json`, the images of train2014 and val2014, and, for
PMRP, `annotations/instances_val2014.json`. Flags and phases are those of `pcme_cub.py`. Rerun
the command to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pcme_cub
from zoo import cli
from zoo.cli import Positive, Signed, Size, differs, setting


@dataclass(frozen=True, kw_only=True)
class Settings(pcme_cub.Settings):
    """The paper's settings for COCO; `toy` is what runs on Toy Scenes."""

    default_backbone: ClassVar[str] = "resnet152"
    out: Path = differs(Path("runs/pcme_coco"))
    captions: Path | None = setting(None, "captions of CUB; COCO has them in dataset_coco.json")
    held_out: Literal["test", "val"] = setting(
        "test", "split to evaluate on; choose settings on val"
    )
    max_words: Size = differs(40, toy=48)
    dim: Size = differs(1024)
    scale: Positive = differs(30.0, toy=10.0)
    shift: Signed = differs(30.0, toy=10.0)
    kl_weight: float = differs(1e-5)
    uniformity_weight: float = differs(0.0)
    learning_rate: float = differs(2e-4)
    fine_tuning_rate: float = differs(0.1, source="PCME, released code", toy=1.0)
    batch_size: Size = differs(128)
    warm_up_epochs: int = differs(30)
    fine_tuning_epochs: int = differs(30)
    cosine_epochs: int | None = differs(30)
    select: Literal["best", "last"] = differs("best")
    cache_features: bool = setting(
        False, "warm up on stored features of the frozen backbone, uncropped", toy=True
    )
    crop_and_flip: bool = differs(True, toy=False)

    def __post_init__(self):
        super().__post_init__()
        if self.captions is not None:
            raise ValueError("--captions applies to CUB; COCO's captions are in dataset_coco.json")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcme_cub.train_and_evaluate(settings, describe_data(settings))


def describe_data(settings):
    """The description of COCO, or of Toy Scenes in its layout, for `zoo.data.open`."""
    layout = {} if settings.data_dir else {"layout": "coco"}
    return settings.describe_data("coco", "toy_scenes", **settings.picture_options(), **layout)


if __name__ == "__main__":
    cli.run(main)
