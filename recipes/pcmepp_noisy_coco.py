"""PCME++ under noisy correspondence: 20 % or 50 % of the captions belong to other images.

    python recipes/pcmepp_noisy_coco.py --noise 0.5                        # Toy Birds
    python recipes/pcmepp_noisy_coco.py --noise 0.5 --method vse_infinity  # a baseline

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, section 4.3. Everything but
the training captions is as in `pcmepp_coco.py`, whose flags it has. The test captions are clean.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from zoo import cli, recipe
from zoo.cli import setting
from zoo.data.noise import with_shuffled_captions

try:
    from recipes import pcmepp_coco
except ModuleNotFoundError:  # a script sees its own folder, not the one above
    import pcmepp_coco


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_coco.Settings):
    """PCME++'s settings, and how much is wrong."""

    out: Path = setting(
        Path("runs/pcmepp_noisy_coco"), "run folder to write or resume", identity=False
    )
    noise: float = setting(0.2, "share of the captions shuffled", source="section 4.3")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return recipe.run(settings, load, pcmepp_coco.build, pcmepp_coco.fit, recipe.against_truth)


def load(settings):
    """The images stay as they are, so their source does too."""
    splits = pcmepp_coco.load(settings)
    noisy = with_shuffled_captions(splits.train.records, settings.noise, settings.seed)
    return splits._replace(train=dataclasses.replace(splits.train, records=noisy))


if __name__ == "__main__":
    cli.run(main)
