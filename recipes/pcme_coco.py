"""PCME on COCO, or on Toy Scenes when no data are given.

    python recipes/pcme_coco.py                                  # Toy Scenes
    python recipes/pcme_coco.py --data-dir coco --image-weights imagenet \\
        --glove glove.840B.300d.txt --annotations-dir eccv_caption

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021, tables 3, E.4 and E.5.
`--data-dir` holds Karpathy's `dataset_coco.json`, the images of train2014 and val2014, and, for
PMRP, `annotations/instances_val2014.json`. Flags and phases are those of `pcme_cub.py`. The same
command resumes a run that was stopped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pcme_cub
from zoo import cli
from zoo.cli import setting


@dataclass(frozen=True, kw_only=True)
class Settings(pcme_cub.Settings):
    """The paper's settings for COCO; `toy` is what runs on Toy Scenes."""

    default_backbone: ClassVar[str] = "resnet152"
    out: Path = setting(Path("runs/pcme_coco"), "run folder to write or resume", identity=False)
    captions: Path | None = setting(None, "of CUB; COCO has them in dataset_coco.json")
    held_out: Literal["test", "val"] = setting(
        "test", "the split to evaluate on; choose settings on val"
    )
    max_words: int = setting(40, "words of a caption that are read", toy=48)
    dim: int = setting(1024, "dimensions of the embedding", source="PCME, appendix C.2", toy=64)
    scale: float = setting(
        30.0,
        "initial a of sigmoid(b - a d), twice what is printed: the code has sigmoid(2x)",
        source="PCME, appendix C.2",
        toy=10.0,
    )
    shift: float = setting(30.0, "initial b, likewise", source="PCME, appendix C.2", toy=10.0)
    kl_weight: float = setting(
        1e-5, "weight of KL to N(0, I)", source="PCME, appendix C.2", toy=1e-4
    )
    uniformity_weight: float = setting(
        0.0, "weight of uniformity", source="PCME, appendix C.2", toy=30.0
    )
    learning_rate: float = setting(
        2e-4, "peak, cosine decay per phase", source="PCME, appendix C.2", toy=2e-3
    )
    fine_tuning_rate: float = setting(
        0.1, "factor of the rate in fine-tuning", source="PCME, released code", toy=1.0
    )
    batch_size: int = setting(128, "pairs", source="PCME, released code", toy=90)
    warm_up_epochs: int = setting(30, "heads only", source="PCME, appendix C.2", toy=0, smoke=1)
    fine_tuning_epochs: int = setting(
        30, "everything", source="PCME, appendix C.2", toy=20, smoke=1
    )
    cache_features: bool = setting(
        False, "warm up on stored features of the frozen backbone, uncropped", toy=True
    )
    crop_and_flip: bool = setting(
        True,
        "train on random parts of 8 to 100 % of the original's area, mirrored or not",
        source="PCME, released code",
        toy=False,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.captions is not None:
            raise ValueError("--captions is of CUB: COCO has them in dataset_coco.json")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcme_cub.train(settings, data(settings))


def data(settings):
    layout = {} if settings.data_dir else {"layout": "coco"}
    return settings.data("coco", "toy_scenes", **settings.pictures(), **layout)


if __name__ == "__main__":
    cli.run(main)
