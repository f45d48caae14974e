"""PCME in the plane: two dimensions, nine classes, ellipses that can be drawn as they are.

    python recipes/pcme_2d.py                       # nine classes of Toy Birds, a minute
    python recipes/pcme_2d.py --data-dir CUB_200_2011 --image-weights imagenet
    python -m zoo.report runs/pcme_2d               # the ellipses, with the generic caption's

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021, figure 5. Trains on
three images in four of each class and evaluates on the fourth; everything else is as in
`recipes/pcme_cub.py`.
"""

from dataclasses import dataclass
from pathlib import Path

import pcme_cub
from zoo import cli
from zoo.cli import setting


@dataclass(frozen=True, kw_only=True)
class Settings(pcme_cub.Settings):
    """Those of `pcme_cub`, in two dimensions."""

    out: Path = setting(Path("runs/pcme_2d"), "run folder to write or resume", identity=False)
    num_classes: int = setting(9, "classes to train on and to draw", source="figure 5")
    image_size: int = setting(224, "pixels", source="section 4.1", toy=32)
    dim: int = setting(2, "dimensions of the embedding", source="figure 5")
    sentence_dim: int | None = setting(64, "width of a sentence's states: two carry too little")
    mean_attention: bool = setting(
        False, "local attention in the mean; its LayerNorm of two numbers leaves but two points"
    )
    unit_mean: bool = setting(
        False, "means of unit length, which in the plane are a circle that no class gets across"
    )
    scale: float = setting(3.0, "initial a of sigmoid(b - a d)")
    shift: float = setting(3.0, "initial b")
    log_variance_bias: float = setting(-5.0, "initial log variance")
    # Without it the classes come to lie on a line.
    uniformity_weight: float = setting(10.0, "weight of uniformity", source="suppl. A", toy=30.0)
    batch_size: int = setting(90, "pairs")
    pairs_per_class: int = setting(10, "pairs of a class in a batch: there are few classes")
    kl_weight: float = setting(1e-3, "weight of KL to N(0, I)", source="suppl. A", toy=0.3)
    word_dropping: float = setting(0.1, "probability of losing a word", source="suppl. A")
    steps_per_epoch: int | None = setting(60, "a class has few captions", smoke=2)
    fine_tuning_epochs: int = setting(50, "everything", source="suppl. A", toy=40, smoke=1)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcme_cub.train(settings, data(settings))


def data(settings):
    return settings.data(
        "few_classes",
        "few_classes",
        num_classes=settings.num_classes,
        image_size=settings.image_size,
        captions=settings.captions,
    )


if __name__ == "__main__":
    cli.run(main)
