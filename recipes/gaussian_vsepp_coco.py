"""Gaussian VSE++ on COCO, or on Toy Scenes when no data are given.

    python recipes/gaussian_vsepp_coco.py                          # Toy Scenes, two minutes
    python recipes/gaussian_vsepp_coco.py --data-dir coco --image-weights imagenet
    python recipes/gaussian_vsepp_coco.py --data-dir coco --image-weights imagenet \\
        --fine-tuning-epochs 15 --similarity min_kl                # ft
    python recipes/gaussian_vsepp_coco.py --similarity kl --covariance spherical_mean

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022.
`--data-dir` holds Karpathy's `dataset_coco.json` and the
images, or SCAN's files for `--features regions`. The same command resumes a run that was stopped.
`studies/crop_ambiguity.py` tests its uncertainties on crops of known ambiguity.
"""

from dataclasses import dataclass
from pathlib import Path

import triplet_training
from zoo import cli, models
from zoo.cli import differs


@dataclass(frozen=True, kw_only=True)
class Settings(triplet_training.GaussianSettings, triplet_training.MeanSettings):
    """The paper's settings for COCO."""

    out: Path = differs(Path("runs/gaussian_vsepp_coco"))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train(settings, "coco", build)


def build(settings, train):
    parts = triplet_training.parts(settings, train)
    return models.gaussian_vsepp(**parts, **settings.of_means(), **settings.of_gaussian())


if __name__ == "__main__":
    cli.run(main)
