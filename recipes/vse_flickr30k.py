"""VSE++ on Flickr30K, or on Toy Scenes in its layout when no data are given; VSE0 by a flag.

    python recipes/vse_flickr30k.py                                # Toy Scenes, two minutes
    python recipes/vse_flickr30k.py --data-dir flickr30k --image-weights imagenet
    python recipes/vse_flickr30k.py --data-dir flickr30k --image-weights imagenet \\
        --fine-tuning-epochs 15                                    # ft

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022,
table 3. Flags and settings are those of `vse_coco.py`. `--data-dir` holds `dataset_flickr30k.json`
and `flickr30k-images/`, or SCAN's files for `--features regions`.
"""

from dataclasses import dataclass
from pathlib import Path

import triplet_training
import vse_coco
from zoo import cli
from zoo.cli import differs


@dataclass(frozen=True, kw_only=True)
class Settings(vse_coco.Settings):
    """The settings for Flickr30K, which are those for COCO."""

    out: Path = differs(Path("runs/vse_flickr30k"))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return triplet_training.train_and_evaluate(settings, "flickr30k", vse_coco.build)


if __name__ == "__main__":
    cli.run(main)
