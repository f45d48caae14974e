"""DAA on PCME-BERT on CUB-200-2011, or on Toy Birds when no data are given.

    python recipes/daa_cub.py                                      # Toy Birds
    python recipes/daa_cub.py --daa-weight 0                       # the base model
    python recipes/daa_cub.py --daa-weight 0 --smooth-ap-weight 300
    python recipes/daa_cub.py --semantics cider_d --daa-temperature 1
    python recipes/daa_cub.py --data-dir CUB_200_2011 --image-weights imagenet \\
        --bert bert_base --bert-vocabulary vocab.txt

Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
Cross-Modal Retrieval", NeurIPS 2022. An image's positives are the captions of its class. Split and
batches are PCME's, one caption with its image from each class. The same command resumes a run that
was stopped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import daa_training
from zoo import cli, encoders
from zoo.cli import setting
from zoo.data import batches


@dataclass(frozen=True, kw_only=True)
class Settings(daa_training.DAASettings):
    """The settings for CUB, those of PCME where the paper has none of its own."""

    out: Path = setting(Path("runs/daa_cub"), "run folder to write or resume", identity=False)
    captions: Path | None = setting(None, "text_c10 folder or archive; default: in --data-dir")
    held_out: Literal["test", "seen_test", "val1", "val2", "val3"] = setting(
        "test",
        "classes to evaluate on: the unseen ones, held-out images of the seen ones, or, to choose "
        "settings on, val1 to val3",
    )
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "resnet50", "image encoder", source="DAA, section 5.2", toy="tiny"
    )
    dim: int = setting(512, "dimensions of the embedding", source="DAA, section 5.2", toy=64)
    scale: float = setting(
        10.0, "initial a of sigmoid(b - a d), twice the printed 5", source="PCME, appendix C.2"
    )
    shift: float = setting(10.0, "initial b", source="PCME, appendix C.2")
    kl_weight: float = setting(
        1e-3, "weight of KL to N(0, I)", source="PCME, appendix C.2", toy=1e-4
    )
    uniformity_weight: float = setting(
        10.0, "weight of uniformity", source="PCME, appendix C.2", toy=30.0
    )
    fine_tuning_rate: float = setting(
        1.0, "factor of the rate in fine-tuning", source="PCME, appendix C.2"
    )
    batch_size: int = setting(150, "pairs, one a class", source="DAA, section 5.2", toy=90)
    crop_and_flip: bool = setting(
        False,
        "train on random parts of the original, mirrored or not",
        source="PCME, released code",
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    data = settings.data("cub", "toy_birds", captions=settings.captions, **settings.pictures())
    return daa_training.train(settings, data, batches.class_pairs)


if __name__ == "__main__":
    cli.run(main)
