"""VSRN on Flickr30K, or on Toy Scenes when no data are given.

    python recipes/vsrn_flickr30k.py                               # Toy Scenes' regions, a minute
    python recipes/vsrn_flickr30k.py --data-dir f30k_precomp
    python recipes/vsrn_flickr30k.py --captioning-weight 0         # matching alone

Li et al., "Visual Semantic Reasoning for Image-Text Matching", ICCV 2019, with the settings of
Pishdad et al., 2022. `--data-dir` holds SCAN's files of precomputed regions, or with
`--features pictures` `dataset_flickr30k.json` and the images. Rerun the command to resume a
stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import triplet_training
from zoo import cli, models
from zoo.cli import Size, differs, setting


@dataclass(frozen=True, kw_only=True)
class Settings(triplet_training.TripletSettings):
    """The settings for Flickr30K."""

    out: Path = differs(Path("runs/vsrn_flickr30k"))
    features: Literal["pictures", "regions"] = differs("regions")
    dim: Size = differs(2048)
    margin: float = differs(0.2, source="VSRN, released code")
    num_layers: Size = setting(
        4, "number of graph convolutions", source="VSRN, released code", toy=2
    )
    captioning_weight: float = setting(
        1.0, "weight of the second loss; 0: none", source="VSRN, released code", toy=0.0
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train_and_evaluate(
        settings, "flickr30k", build, with_extra_loss=triplet_training.with_captioning
    )


def build(settings, train_split):
    """The untrained VSRN."""
    return models.vsrn(
        num_layers=settings.num_layers, **triplet_training.towers(settings, train_split)
    )


if __name__ == "__main__":
    cli.run(main)
