"""DAA on PCME-BERT on CUB-200-2011, or on Toy Birds when no data are given.

    python recipes/daa_cub.py                                      # Toy Birds
    python recipes/daa_cub.py --daa-weight 0                       # the base model
    python recipes/daa_cub.py --daa-weight 0 --smooth-ap-weight 300
    python recipes/daa_cub.py --semantics cider_d --daa-temperature 1
    python recipes/daa_cub.py --data-dir CUB_200_2011 --image-weights imagenet \\
        --bert bert_base --bert-vocabulary vocab.txt

Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
Cross-Modal Retrieval", NeurIPS 2022. An image's positives are the captions of its class. Split and
batches are PCME's, one caption with its image from each class. Rerun the command to resume a
stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import daa_training
from zoo import cli, encoders
from zoo.cli import AS_DEFAULT, Positive, Signed, Size, differs, setting
from zoo.data import batches
from zoo.training.settings import CUB_CAPTIONS, CUB_HELD_OUT, CUB_SPLITS


@dataclass(frozen=True, kw_only=True)
class Settings(daa_training.DAASettings):
    """The settings for CUB, those of PCME where the paper has none of its own."""

    captions: Path | None = setting(None, CUB_CAPTIONS)
    out: Path = differs(Path("runs/daa_cub"))
    held_out: Literal[CUB_SPLITS] = differs("test", help=CUB_HELD_OUT)
    backbone: Literal[encoders.CONVOLUTIONAL] = differs("resnet50")
    dim: Size = differs(512)
    scale: Positive = differs(
        10.0, help="initial a of sigmoid(b - a d), twice the printed 5", toy=AS_DEFAULT
    )
    shift: Signed = differs(10.0, toy=AS_DEFAULT)
    kl_weight: float = differs(1e-3)
    uniformity_weight: float = differs(10.0)
    fine_tuning_rate: float = setting(
        1.0, "factor of the learning rate in fine-tuning", source="DAA, released code"
    )
    batch_size: Size = differs(150, help="pairs, one a class")
    crop_and_flip: bool = differs(
        False, help="train on random parts of the original, mirrored or not", toy=AS_DEFAULT
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return daa_training.train_and_evaluate(settings, describe_data(settings), batches.class_pairs)


def describe_data(settings):
    """The description of CUB, or of Toy Birds without `--data-dir`, for `zoo.data.open`."""
    return settings.describe_data(
        "cub", "toy_birds", captions=settings.captions, **settings.picture_options()
    )


if __name__ == "__main__":
    cli.run(main)
