"""DivE on Flickr30K, or on Toy Scenes in its layout when no data are given.

    python recipes/dive_flickr30k.py                               # Toy Scenes' regions, a minute
    python recipes/dive_flickr30k.py --data-dir f30k_precomp --features regions
    python recipes/dive_flickr30k.py --data-dir flickr30k --image-weights imagenet

Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings", CVPR 2023. Flags and
settings are those of `dive_coco.py`. `--data-dir` holds `dataset_flickr30k.json` and
`flickr30k-images/`, or SCAN's files for `--features regions`.
"""

from dataclasses import dataclass
from pathlib import Path

import dive_coco
from zoo import cli
from zoo.cli import differs


@dataclass(frozen=True, kw_only=True)
class Settings(dive_coco.Settings):
    """The paper's settings for Flickr30K, which are those for COCO."""

    out: Path = differs(Path("runs/dive_flickr30k"))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return dive_coco.train_and_evaluate(settings, dive_coco.describe_data(settings, "flickr30k"))


if __name__ == "__main__":
    cli.run(main)
