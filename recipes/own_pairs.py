"""PCME++ on pictures and captions of your own, or on Toy Scenes when no data are given.

    python recipes/own_pairs.py --data-dir photos --backbone mobilenet_v2 --weights imagenet

`--data-dir` is a folder of pictures with a table of them, `pairs.csv`:

    image,caption
    beach/1.jpg,two children build a castle
    beach/1.jpg,a castle of sand

or `pairs.tsv`, or `pairs.jsonl` with `{"image": …, "caption": …}` a line. One picture in twenty is
held out to evaluate on. The flags are those of `pcmepp_coco.py`; pretrained backbones start best.
"""

from dataclasses import dataclass
from pathlib import Path

from zoo import cli, recipe
from zoo.cli import setting

try:
    from recipes import pcmepp_coco
except ModuleNotFoundError:  # a script sees its own folder, not the one above
    import pcmepp_coco


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_coco.Settings):
    """PCME++'s settings."""

    out: Path = setting(Path("runs/own_pairs"), "run folder to write or resume", identity=False)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return recipe.run(settings, recipe.table_of_pairs, pcmepp_coco.build, pcmepp_coco.fit)


if __name__ == "__main__":
    cli.run(main)
