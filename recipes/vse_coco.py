"""VSE++ on COCO, or on Toy Scenes when no data are given; VSE0 by a flag.

    python recipes/vse_coco.py                                     # Toy Scenes, two minutes
    python recipes/vse_coco.py --data-dir coco --image-weights imagenet
    python recipes/vse_coco.py --data-dir coco_precomp --features regions
    python recipes/vse_coco.py --data-dir coco --image-weights imagenet \\
        --fine-tuning-epochs 15                                    # ft
    python recipes/vse_coco.py --mining sum                        # VSE0

Faghri et al., "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives", BMVC 2018, with
the settings of Pishdad et al., 2022. `--data-dir` holds Karpathy's `dataset_coco.json` and the
images, or SCAN's files for `--features regions`. Rerun the command to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path

import triplet_training
from zoo import cli, models
from zoo.cli import differs, setting


@dataclass(frozen=True, kw_only=True)
class Settings(triplet_training.TripletSettings):
    """The settings for COCO: those of Pishdad et al., and VSE++'s scaling of features."""

    out: Path = differs(Path("runs/vse_coco"))
    unit_features: bool = setting(
        True,
        "scale a network's mean feature to length one before the linear map; regions never",
        source="VSE++, released code",
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train_and_evaluate(settings, "coco", build)


def build(settings, train_split):
    """The untrained VSE++."""
    return models.vsepp(
        **triplet_training.towers(settings, train_split),
        unit_features=settings.unit_features and settings.features == "pictures",
    )


if __name__ == "__main__":
    cli.run(main)
