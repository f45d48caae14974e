"""PCME++ on pictures and captions of your own, or on Toy Scenes when no data are given.

    python recipes/own_pairs.py --data-dir photos --backbone mobilenet_v2 --weights imagenet

`--data-dir` is a folder of pictures with a table of them, `pairs.csv`:

    image,caption
    beach/1.jpg,two children build a castle
    beach/1.jpg,a castle of sand

or `pairs.tsv`, or `pairs.jsonl` with `{"image": …, "caption": …}` a line. One picture in ten is for
validation and one in ten for the test. The flags are those of `pcmepp_coco.py`; pretrained
backbones start best.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pcmepp_coco
from zoo import cli
from zoo.cli import setting


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_coco.Settings):
    """PCME++'s settings; `toy` is what runs on Toy Scenes."""

    out: Path = setting(Path("runs/own_pairs"), "run folder to write or resume", identity=False)
    toy: Literal["scenes"] = setting("scenes", "the drawn data, without --data-dir")
    max_words: int = setting(77, "tokens of a caption that are read", toy=48)
    batch_size: int = setting(128, "pairs", source="PCME++, table B.1")
    steps_per_epoch: int | None = setting(None, "default: captions / batch", toy=32, smoke=2)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    data = settings.data("pairs", "toy_scenes", **options(settings))
    return pcmepp_coco.train(settings, data)


def options(settings):
    shown = settings.pictures()
    if settings.data_dir is None:
        return {"num_images": settings.toy_images, **shown}
    return {"seed": settings.seed, **shown}


if __name__ == "__main__":
    cli.run(main)
