"""Gaussian VSE++ on COCO, or on Toy Scenes when no data are given.

    python recipes/gaussian_vsepp_coco.py                          # Toy Scenes, two minutes
    python recipes/gaussian_vsepp_coco.py --data-dir coco --image-weights imagenet
    python recipes/gaussian_vsepp_coco.py --data-dir coco --image-weights imagenet \\
        --fine-tuning-epochs 15 --similarity min_kl                # ft
    python recipes/gaussian_vsepp_coco.py --similarity kl --covariance spherical_mean

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022.
`--data-dir` holds Karpathy's `dataset_coco.json` and the images, or SCAN's files for
`--features regions`. Rerun the command to resume a stopped run. `studies/crop_ambiguity.py` tests
its uncertainties on crops of known ambiguity.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import triplet_training
from zoo import cli, models
from zoo.cli import Positive, Signed, differs, setting


@dataclass(frozen=True, kw_only=True)
class Settings(triplet_training.TripletSettings):
    """The paper's settings for COCO: VSE++'s, and those of the Gaussian head."""

    out: Path = differs(Path("runs/gaussian_vsepp_coco"))
    unit_features: bool = setting(
        True,
        "scale a network's mean feature to length one before the linear map; regions never",
        source="VSE++, released code",
    )
    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = setting(
        "ellipsoidal", "variances: one per dimension, their mean, or one value"
    )
    similarity: Literal[triplet_training.SIMILARITIES] = setting(
        "wasserstein_2",
        "similarity to train and to rank with",
        source="Pishdad et al., section 4.4",
        toy="kl",
    )
    lowest_variance: Positive = setting(
        0.1, "bound on the variance of a dimension", source="Pishdad et al., section 4.2"
    )
    highest_variance: Positive = setting(
        10.0, "bound on the variance of a dimension", source="Pishdad et al., section 4.2"
    )
    initial_log_variance: Signed = setting(
        0.0, "initial log variance; 0 is the middle of the bounds"
    )
    test_similarities: tuple[str, ...] = differs(("own", "euclidean"))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train_and_evaluate(settings, "coco", build)


def build(settings, train_split):
    """The untrained Gaussian VSE++."""
    return models.gaussian_vsepp(
        **triplet_training.towers(settings, train_split),
        **triplet_training.gaussian_head(settings),
        unit_features=settings.unit_features and settings.features == "pictures",
    )


if __name__ == "__main__":
    cli.run(main)
