"""PCME++ under noisy correspondence: 20 % or 50 % of the captions belong to other images.

    python recipes/pcmepp_noisy_coco.py --noise 0.5                        # Toy Birds
    python recipes/pcmepp_noisy_coco.py --noise 0.5 --method vse_infinity  # a baseline

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, section 3.2. Everything but
the training captions is as in `pcmepp_coco.py`, whose flags it has. The test captions are clean.
"""

from dataclasses import dataclass
from pathlib import Path

import pcmepp_coco
from zoo import cli
from zoo.cli import Share, differs, setting
from zoo.data.records.records import with_shuffled_captions


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_coco.Settings):
    """PCME++'s settings, and how much is wrong."""

    out: Path = differs(Path("runs/pcmepp_noisy_coco"))
    noise: Share = setting(
        0.2, "share of the captions that are shuffled", source="PCME++, section 3.2"
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcmepp_coco.train_and_evaluate(
        settings,
        pcmepp_coco.describe_data(settings),
        change_splits=lambda run: shuffle(settings, run),
    )


def shuffle(settings, run):
    """Gives a share of the training captions to other images; the images stay as they are."""
    noisy = with_shuffled_captions(run.train.records, settings.noise, settings.seed)
    run.train = run.train.with_records(noisy)


if __name__ == "__main__":
    cli.run(main)
