"""Gaussian VSRN on Flickr30K, or on Toy Scenes when no data are given.

    python recipes/gaussian_vsrn_flickr30k.py                      # Toy Scenes' regions, a minute
    python recipes/gaussian_vsrn_flickr30k.py --data-dir f30k_precomp
    python recipes/gaussian_vsrn_flickr30k.py --covariance ellipsoidal --similarity min_kl

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022.
`--data-dir` holds SCAN's files of precomputed regions, or with `--features pictures`
`dataset_flickr30k.json` and the images. Rerun the command to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import triplet_training
import vsrn_flickr30k
from zoo import cli, models
from zoo.cli import Positive, Signed, differs, setting


@dataclass(frozen=True, kw_only=True)
class Settings(vsrn_flickr30k.Settings):
    """VSRN's settings, and those of the Gaussian head."""

    out: Path = differs(Path("runs/gaussian_vsrn_flickr30k"))
    margin: float = differs(0.1, source="Pishdad et al., section 4.2", toy=0.2)
    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = setting(
        "spherical_mean", "variances: one per dimension, their mean, or one value"
    )
    similarity: Literal[triplet_training.SIMILARITIES] = setting(
        "wasserstein_2",
        "similarity to train and to rank with",
        source="Pishdad et al., section 4.4",
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


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train_and_evaluate(
        settings, "flickr30k", build, with_extra_loss=triplet_training.with_captioning
    )


def build(settings, train_split):
    """The untrained Gaussian VSRN."""
    return models.gaussian_vsrn(
        num_layers=settings.num_layers,
        **triplet_training.towers(settings, train_split),
        **triplet_training.gaussian_head(settings),
    )


if __name__ == "__main__":
    cli.run(main)
