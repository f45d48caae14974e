"""Gaussian VSE++ on Flickr30K, or on Toy Scenes in its layout when no data are given.

    python recipes/gaussian_vsepp_flickr30k.py                     # Toy Scenes, two minutes
    python recipes/gaussian_vsepp_flickr30k.py --data-dir flickr30k --image-weights imagenet
    python recipes/gaussian_vsepp_flickr30k.py --data-dir flickr30k --image-weights imagenet \\
        --fine-tuning-epochs 15                                    # ft

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022,
table 3: spherical covariances and KL. Which of its two spherical forms was taken is not printed; it
is the mean of the variances here. Flags are those of `gaussian_vsepp_coco.py`. `--data-dir` holds
`dataset_flickr30k.json` and `flickr30k-images/`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import gaussian_vsepp_coco
import triplet_training
from zoo import cli
from zoo.cli import AS_DEFAULT, differs


@dataclass(frozen=True, kw_only=True)
class Settings(gaussian_vsepp_coco.Settings):
    """The paper's settings for Flickr30K."""

    out: Path = differs(Path("runs/gaussian_vsepp_flickr30k"))
    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = differs(
        "spherical_mean", source="Pishdad et al., section 4.4"
    )
    similarity: Literal[triplet_training.SIMILARITIES] = differs("kl", toy=AS_DEFAULT)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train_and_evaluate(settings, "flickr30k", gaussian_vsepp_coco.build)


if __name__ == "__main__":
    cli.run(main)
