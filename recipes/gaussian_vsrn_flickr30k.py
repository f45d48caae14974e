"""Gaussian VSRN on Flickr30K, or on Toy Scenes when no data are given.

    python recipes/gaussian_vsrn_flickr30k.py                      # Toy Scenes' regions, a minute
    python recipes/gaussian_vsrn_flickr30k.py --data-dir f30k_precomp
    python recipes/gaussian_vsrn_flickr30k.py --covariance ellipsoidal --similarity min_kl

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022.
`--data-dir` holds SCAN's files of precomputed regions, or with `--features pictures`
`dataset_flickr30k.json` and the images. The same command resumes a run that was stopped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import triplet_training
import vsrn_flickr30k
from zoo import cli, models
from zoo.cli import AS_DEFAULT, differs


@dataclass(frozen=True, kw_only=True)
class Settings(vsrn_flickr30k.Settings, triplet_training.GaussianSettings):
    """VSRN's settings, and what a Gaussian has besides."""

    out: Path = differs(Path("runs/gaussian_vsrn_flickr30k"))
    margin: float = differs(0.1, source="Pishdad et al., section 4.2", toy=0.2)
    similarity: Literal[triplet_training.SIMILARITIES] = differs("wasserstein_2", toy=AS_DEFAULT)
    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = differs(
        "spherical_mean"
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train(settings, "flickr30k", build, triplet_training.captioned)


def build(settings, train):
    parts = triplet_training.parts(settings, train)
    return models.gaussian_vsrn(num_layers=settings.num_layers, **parts, **settings.of_gaussian())


if __name__ == "__main__":
    cli.run(main)
