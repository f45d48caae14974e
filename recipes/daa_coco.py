"""DAA on PCME-BERT on COCO, or on Toy Scenes when no data are given.

    python recipes/daa_coco.py                                     # Toy Scenes
    python recipes/daa_coco.py --daa-weight 0                      # the base model
    python recipes/daa_coco.py --data-dir coco --image-weights imagenet \\
        --bert bert_base --bert-vocabulary vocab.txt

Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
Cross-Modal Retrieval", NeurIPS 2022. `--data-dir` holds Karpathy's `dataset_coco.json` and the
images. Rerun the command to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path

import daa_training
from zoo import cli
from zoo.cli import differs
from zoo.data import batches


@dataclass(frozen=True, kw_only=True)
class Settings(daa_training.DAASettings):
    """The paper's settings for COCO."""

    out: Path = differs(Path("runs/daa_coco"))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return daa_training.train_and_evaluate(
        settings, describe_data(settings), batches.image_caption_pairs
    )


def describe_data(settings):
    """The description of COCO, or of Toy Scenes in its layout, for `zoo.data.open`."""
    layout = {} if settings.data_dir else {"layout": "coco"}
    return settings.describe_data("coco", "toy_scenes", **settings.picture_options(), **layout)


if __name__ == "__main__":
    cli.run(main)
