"""PCME in two dimensions on nine classes, whose ellipses can be drawn without a projection.

    python recipes/pcme_2d.py                       # nine classes of Toy Birds, a minute
    python recipes/pcme_2d.py --data-dir CUB_200_2011 --image-weights imagenet \\
        --glove glove.840B.300d.txt
    python -m studies.pcme_figures --figure 5 --runs runs/pcme_2d   # the ellipses

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021, figure 5, on its nine
classes of CUB (appendix C.3). Trains on three images in four of each class and evaluates on the
fourth; everything else is as in `recipes/pcme_cub.py`. The paper does not say what a batch of nine
classes is: here it has ten pairs of each. Its means of unit length would lie on a circle, which
figure 5 does not show: here they are free.
"""

from dataclasses import dataclass
from pathlib import Path

import pcme_cub
from zoo import cli
from zoo.cli import AS_DEFAULT, Positive, Share, Signed, Size, differs, setting

FIGURE_5 = (
    "Western_Grebe",
    "Pied_billed_Grebe",
    "Pacific_Loon",
    "Vermilion_Flycatcher",
    "Black_and_white_Warbler",
    "American_Redstart",
    "Red_headed_Woodpecker",
    "Red_bellied_Woodpecker",
    "Downy_Woodpecker",
)


@dataclass(frozen=True, kw_only=True)
class Settings(pcme_cub.Settings):
    """Those of `pcme_cub`, in two dimensions."""

    out: Path = differs(Path("runs/pcme_2d"))
    classes: tuple[str, ...] = setting(
        FIGURE_5, "names of the classes to train on and to plot", source="PCME, appendix C.3"
    )
    num_classes: Size = setting(
        9, "number of the toy data's first classes to take instead of --classes"
    )
    image_size: Size = differs(224, toy=32)
    dim: Size = differs(2, source="PCME, figure 5", toy=AS_DEFAULT)
    sentence_dim: Size | None = setting(
        1024, "width of the sentence GRU's states", source="PCME, appendix C.3", toy=64
    )
    mean_attention: bool = differs(False, source="PCME, appendix C.3")
    variance_attention: bool = differs(False, source="PCME, appendix C.3", toy=True)
    variance_gru: bool = differs(
        False,
        help="a second GRU; the paper has two projections of one sentence",
        source="PCME, appendix C.3",
    )
    unit_mean: bool = setting(
        False, "give means unit length; in the plane they lie on a circle, which no class can cross"
    )
    scale: Positive = differs(10.0, help="initial a of sigmoid(b - a d)", toy=3.0)
    shift: Signed = differs(10.0, help="initial b", toy=3.0)
    log_variance_bias: Signed = setting(-5.0, "initial log variance")
    # Without it the classes come to lie on a line.
    uniformity_weight: float = differs(10.0)
    batch_size: Size = setting(90, "pairs per batch")
    pairs_per_class: Size = setting(10, "pairs of each class in a batch: there are few classes")
    kl_weight: float = differs(1e-3, toy=0.3)
    word_dropping: Share = differs(0.1, toy=AS_DEFAULT)
    steps_per_epoch: Size | None = setting(60, "steps per epoch: a class has few captions", smoke=2)
    fine_tuning_epochs: int = differs(50, toy=40)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcme_cub.train_and_evaluate(settings, describe_data(settings))


def describe_data(settings):
    """The description of nine classes of CUB or of Toy Birds, for `zoo.data.open`."""
    chosen = {"classes": list(settings.classes)}
    if settings.data_dir is None:
        chosen = {"num_classes": settings.num_classes}
    return settings.describe_data(
        "few_classes",
        "few_classes",
        **chosen,
        captions=settings.captions,
        **settings.picture_options(),
    )


if __name__ == "__main__":
    cli.run(main)
