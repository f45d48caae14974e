"""PCME++ with a GRU on pictures and captions of your own: `own_pairs.py --text gru`.

    python recipes/own_pairs.py --text gru --data-dir photos --out runs/photos
    python recipes/own_pairs.py --data-dir photos --start-from runs/photos --out runs/more
    python recipes/own_pairs.py                                  # Toy Scenes, drawn here

It knows no word before it has seen your captions, and takes minutes where `own_pairs.py` takes
seconds; but all of it can be trained, with CLIP's networks too. `--data-dir` is as of
`own_pairs.py`. The pretrained image network stays frozen and its features are stored, so two CPU
cores are enough; `--frozen-epochs` below `--epochs` trains it too, which wants a GPU. The other
flags are those of `pcmepp_coco.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import own_pairs_next
import pcmepp_coco
import pcmepp_settings
from zoo import cli, encoders, models
from zoo.cli import AS_DEFAULT, differs, setting
from zoo.files import RunFolder

CLIP_FROZEN_EPOCHS = 2  # PCME++, section 3.1
MEAN_EPOCHS = 10
# What a model brings with it, where a training starts from one.
OF_THE_MODEL = (
    "method", "backbone", "image_size", "resize", "crop_fraction", "max_words", "dim", "word_dim",
    "pooling", "log_variance_bias",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_settings.Settings):
    """Settings for some thousand pictures and an ImageNet network; the paper's are for COCO."""

    out: Path = differs(Path("runs/own_pairs"))
    toy: Literal["scenes"] = differs("scenes")
    image_weights: str | None = setting(
        "imagenet",
        "backbone weights: imagenet (fetched once), a file (.h5, .npz, .safetensors) or none",
        toy=None,
    )
    weights: str | None = field(default=None, init=False)  # --image-weights
    start_from: Path | None = setting(
        None, "a finished run of this recipe or of pcmepp_coco.py, to train its model further"
    )
    image_dir: Path | None = setting(
        None, "folder of the pictures; default: found at or below --data-dir"
    )
    image_column: str = setting("image", "column or key of a table's pictures")
    caption_column: str = setting("caption", "column or key of a table's captions")
    separator: str | None = setting(
        None, "between the fields of a table, or tab; default: comma in .csv, tab in .tsv"
    )
    held_out_share: float = setting(
        0.1, "images for validation and for the test each, without a column split"
    )
    method: Literal[pcmepp_settings.METHODS] = differs("pcmepp")
    dim: int = differs(256, source="")
    text: Literal["gru"] = setting("gru", "what reads captions")
    max_words: int = setting(24, "words read per caption", toy=48)
    pseudo_positive_weight: float | None = setting(
        0.0, "weight of pseudo-positives (alpha); 0: none"
    )
    kl_reduction: Literal["mean", "mean_per_dimension"] = setting(
        "mean", "how the VIB loss of an item is counted"
    )
    log_variance_bias: float | None = setting(-6.5, "initial log variance", toy=-5.0)
    learning_rate: float = setting(2e-3, "learning rate of AdamP")
    image_rate: float = setting(
        0.1, "factor of the image backbone's learning rate, once it trains", toy=1.0
    )
    caption_rate: float | None = setting(
        None,
        "factor of the text backbone's learning rate; default: 1 for a GRU, 0.1 for CLIP's",
        toy=1.0,
    )
    batch_size: int = differs(128, toy=AS_DEFAULT)
    steps_per_epoch: int | None = differs(None, toy=32)
    cache_features: bool | None = setting(
        None, "store the frozen backbone's features; default: unless the backbone is CLIP's"
    )
    epochs: int = differs(30, source="")
    mean_epochs: int | None = differs(
        None, help=f"of these the means alone, first; default: {MEAN_EPOCHS}, 0 with --start-from"
    )
    frozen_epochs: int | None = setting(
        None,
        "further epochs with the image backbone frozen; default: 2 with CLIP's, else all others",
        toy=0,
        smoke=1,
    )
    warm_up_epochs: int = setting(
        1, "epochs of linear warm-up at the start of the last phase", smoke=1
    )
    last_epochs: int = setting(
        0, "last epochs, at a tenth of the learning rate, with --schedule steps", toy=6, smoke=1
    )
    schedule: Literal["steps", "cosine"] = setting(
        "cosine", "schedule of the learning rate in the last phase", toy="steps"
    )
    averaged_epochs: int | None = setting(
        0,
        "last epochs whose weights are averaged (SWA); 0: none, the best epoch is kept",
        toy=6,
        smoke=1,
    )
    mixed_share: float | None = setting(0.25, "share of images mixed by Mixup or CutMix")

    def __post_init__(self):
        if self.start_from is not None:
            before = RunFolder.existing(self.start_from).settings
            self._set(**{name: before[name] for name in OF_THE_MODEL if name in before})
        if self.data_dir is not None and self.backbone is None:
            named = encoders.backbone_of_file(self.image_weights)
            self._set(backbone=named or "mobilenet_v2")
        if self.image_weights == "imagenet" and self.is_clip:
            raise ValueError(
                f"--image-weights must be a local file of CLIP's for {self.network}, or none"
            )
        if self.image_weights == "imagenet" and self.network in encoders.FROM_SCRATCH:
            self._set(image_weights=None)  # there are none
        self._set(weights=self.image_weights)
        if self.mean_epochs is None:
            self._set(mean_epochs=0 if self.start_from else min(MEAN_EPOCHS, self.epochs // 3))
        clip = self.is_clip
        if self.caption_rate is None:
            self._set(caption_rate=0.1 if clip else 1.0)
        if self.cache_features is None:
            self._set(cache_features=not clip)
        if self.frozen_epochs is None:
            all_others = self.epochs - self.mean_epochs
            self._set(frozen_epochs=min(CLIP_FROZEN_EPOCHS, all_others) if clip else all_others)
        super().__post_init__()

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    data = settings.data("pairs", "toy_scenes", **options(settings))
    results = pcmepp_coco.train(settings, data, make=build)
    if results is not None:  # of several workers the chief alone has them
        print("\n".join(own_pairs_next.lines(results, settings.out)))
    return results


def options(settings):
    shown = settings.pictures()
    if settings.data_dir is None:
        return {"num_images": settings.toy_images, **shown}
    table = {"image_column": "image", "caption_column": "caption", "separator": None}
    named = {name: getattr(settings, name) for name in table}
    if settings.image_dir is not None:
        shown = {"images": str(settings.image_dir), **shown}
    changed = {name: value for name, value in named.items() if value != table[name]}
    share = {"seed": settings.seed, "held_out_share": settings.held_out_share}
    return {**share, **changed, **shown}


def build(settings, train):
    if settings.start_from is None:
        return pcmepp_coco.build(settings, train)
    return models.from_preset(settings.start_from)


if __name__ == "__main__":
    cli.run(main)
