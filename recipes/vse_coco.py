"""VSE++ on COCO, or on Toy Scenes when no data are given; VSE0 by a flag.

    python recipes/vse_coco.py                                     # Toy Scenes, two minutes
    python recipes/vse_coco.py --data-dir coco --image-weights imagenet
    python recipes/vse_coco.py --data-dir coco_precomp --features regions
    python recipes/vse_coco.py --data-dir coco --image-weights imagenet \\
        --fine-tuning-epochs 15                                    # ft
    python recipes/vse_coco.py --mining sum                        # VSE0

Faghri et al., "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives", BMVC 2018, with
the settings of Pishdad et al., 2022. `--data-dir` holds Karpathy's `dataset_coco.json` and the
images, or SCAN's files for `--features regions`. The same command resumes a run that was stopped.
"""

from dataclasses import dataclass
from pathlib import Path

import triplet_training
from zoo import cli, models
from zoo.cli import differs


@dataclass(frozen=True, kw_only=True)
class Settings(triplet_training.MeanSettings):
    """The settings for COCO."""

    out: Path = differs(Path("runs/vse_coco"))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train(settings, "coco", build)


def build(settings, train):
    return models.vsepp(**triplet_training.parts(settings, train), **settings.of_means())


if __name__ == "__main__":
    cli.run(main)
