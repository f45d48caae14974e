"""The settings of PCME++, for the recipes that share them: COCO, noisy COCO and RedCaps."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from zoo import encoders, training
from zoo.cli import Positive, Share, Signed, Size, differs, setting
from zoo.data.pipeline.augmentation import RandomCrop
from zoo.images.pictures import RESIZES
from zoo.training.settings import UNSAID, check_weights

# "tiny" is the convolutional one; CLIP's is for tests.
BACKBONES = tuple(dict.fromkeys((*encoders.CLIP, *encoders.CONVOLUTIONAL)))
METHODS = ("pcmepp", "mean_only", "wasserstein_2", "pcme", "infonce", "vse_infinity")
DISTANCES = {
    "pcmepp": "csd",
    "mean_only": "squared_euclidean",
    "wasserstein_2": "squared_wasserstein_2",
    "pcme": "match_probability",
}


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The paper's settings for COCO; `toy` is what runs on Toy Birds."""

    crop: ClassVar[RandomCrop] = RandomCrop(sides=(0.6, 1.0))

    out: Path = differs(Path("runs/pcmepp_coco"))
    toy: Literal["birds", "scenes"] = setting("birds", "which toy data to draw, without --data-dir")
    toy_images: int | None = setting(None, "scenes to draw for --toy scenes; default: 1200")
    method: Literal[METHODS] = setting("pcmepp", "what to train over the two encoders")
    backbone: Literal[BACKBONES] | None = setting(
        None, "CLIP's ViT or a convolutional network; default: vit_b_32, tiny on the toy data"
    )
    weights: str | None = setting(
        UNSAID,
        "weights of the backbone: a local file, or none; required with --data-dir",
    )
    bpe: Path | None = setting(None, "CLIP's bpe_simple_vocab_16e6.txt.gz, for a CLIP backbone")
    image_size: Size = differs(224, source="PCME++, released code", toy=32)
    resize: Literal[RESIZES] = setting(
        "stretch",
        "how a photo becomes a square: crop its middle, or stretch all of it",
        source="PCME++, released code",
        toy="crop",
    )
    dim: Size = setting(1024, "dimensions of the embedding", source="PCME++, table B.1", toy=64)
    word_dim: Size = setting(300, "dimensions of a word vector; not used with CLIP", toy=64)
    max_words: Size = setting(77, "tokens read per caption", toy=20)
    scale: Positive = setting(5.0, "initial a in b - a CSD", source="PCME++, section 3.1")
    shift: Signed = setting(5.0, "initial b in the match probability", source="PCME++, section 3.1")
    pseudo_positive_weight: float | None = setting(
        None,
        "weight of pseudo-positives (alpha); default for pcmepp and mean_only: 0.1, toy 0.02",
        source="PCME++, section 3.1",
    )
    kl_weight: float | None = setting(
        None,
        "weight of the VIB loss (beta); 0: none; default: 1e-3 for pcme, else 1e-4",
        source="PCME++, table B.1; PCME++, released code",
        toy=1e-4,
    )
    pair_weight: float = setting(
        2.0,
        "weight of a pair in the matching loss: 2 as released (once per direction), 1 as printed",
        source="PCME++, released code",
        toy=1.0,
    )
    pair_reduction: Literal["mean", "sum"] | None = setting(
        None,
        "matching loss over the pairs of a batch; default: sum for pcme, else mean",
        source="PCME++, figure A.1; PCME++, released code",
        toy="mean",
    )
    kl_reduction: Literal["mean", "mean_per_dimension"] = setting(
        "mean_per_dimension",
        "VIB loss of an item: mean over dimensions, or sum",
        source="PCME++, figure A.1",
        toy="mean",
    )
    temperature: Positive = setting(
        1.0, "initial temperature of infonce", source="PCME++, section 3.1", toy=0.07
    )
    num_samples: Size = setting(8, "samples per embedding, for pcme", source="PCME++, section 3.1")
    variance_blocks: Size = setting(
        1,
        "last CLIP blocks that the variance does not share with the mean",
        source="PCME++, table 5",
    )
    pooling: Literal["generalized", "mean"] = setting(
        "generalized", "pooling: GPO or the mean; of CLIP's words, mean is the end of text"
    )
    mixed_share: Share | None = setting(
        None,
        "share mixed by Mixup or CutMix; default: 0.25 for pcmepp and mean_only, else 0",
        source="PCME++, section 3.1",
    )
    mixing_beta: Positive = setting(
        2.0, "both parameters of the Beta distribution of λ", source="PCME++, section 3.1"
    )
    mixup: Share = setting(
        0.5,
        "share of mixed images that Mixup takes; CutMix takes the rest",
        source="PCME++, section 2.4",
    )
    mix_whole_batches: bool = setting(
        False,
        "mix whole batches, that share of them, instead of that share of each batch",
        source="PCME++, table C.3",
    )
    drop_rate: Share = setting(
        0.2, "share of visual tokens left out", source="PCME++, released code"
    )
    drop_varies: bool = setting(
        True,
        "leave out the share --drop-rate × u, u uniform in [0, 1], and none where u ≤ --drop-rate",
        source="PCME++, released code",
        toy=False,
    )
    word_dropping: Share = setting(
        0.2,
        "probability that a word is masked, replaced or deleted",
        source="PCME++, released code",
    )
    crop_and_flip: bool = setting(
        True,
        "train on random crops, 60 to 100 % of height and width, mirrored half of the time",
        source="PCME++, released code",
        toy=False,
    )
    log_variance_bias: Signed | None = setting(
        None, "initial log variance; default: -log(dim) - 3", toy=-5.0
    )
    margin: float = setting(
        0.2, "margin of the triplet loss of vse_infinity", source="PCME++, section 3.1"
    )
    hinges_while_frozen: bool = setting(
        True,
        "vse_infinity takes the sum of hinges, not the hardest negatives, in --frozen-epochs",
        source="PCME++, released code",
    )
    learning_rate: float = setting(
        5e-4, "learning rate of AdamP", source="PCME++, table B.1", toy=2e-3
    )
    image_rate: float = setting(
        0.01, "factor of the image backbone's learning rate", source="PCME++, table B.1", toy=1.0
    )
    caption_rate: float = setting(
        0.1, "factor of the text backbone's learning rate", source="PCME++, table B.1", toy=1.0
    )
    layer_decay: Share = setting(
        0.7, "factor from a block to the one below", source="PCME++, table B.1"
    )
    decay_last_block: bool = setting(
        True,
        "a backbone's last block has --layer-decay once too, which the table does not print",
        source="PCME++, released code",
        toy=False,
    )
    beta_2: Share = setting(0.999, "β₂ of AdamP", source="PCME++, table B.1")
    epsilon: Positive = setting(1e-8, "ε of AdamP", source="PCME++, table B.1")
    weight_decay: float = setting(
        1e-4, "weight decay, of all but scale and shift", source="PCME++, table B.1"
    )
    clip_norm: Positive = setting(
        2.0, "gradients with a larger norm are scaled to it", source="PCME++, released code"
    )
    batch_size: Size = setting(128, "pairs per batch", source="PCME++, table B.1", toy=90)
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: captions / batch size", toy=60, smoke=2
    )
    cache_features: bool = setting(
        False, "while a convolutional backbone is frozen, train on its stored features, uncropped"
    )
    frozen_epochs: int = setting(
        2, "epochs with the image backbone frozen", source="PCME++, section 3.1", toy=0, smoke=1
    )
    warm_up_epochs: int = setting(
        1, "epochs of linear warm-up after the frozen epochs", source="PCME++, section 3.1", smoke=1
    )
    mean_epochs: int = setting(
        0,
        "first epochs, in which the means alone train, where CLIP's weights are not given",
        toy=16,
        smoke=0,
    )
    schedule: Literal["steps", "cosine"] = setting(
        "steps",
        "schedule after the warm-up: a tenth of the rate for the last epochs, or a cosine to 0",
        source="PCME++, table B.1",
    )
    epochs: Size = setting(
        25, "total number of epochs", source="PCME++, table B.1", toy=48, smoke=3
    )
    last_epochs: int = setting(
        10,
        "last epochs, at a tenth of the learning rate",
        source="PCME++, section 3.1",
        toy=6,
        smoke=1,
    )
    averaged_epochs: int | None = setting(
        None,
        "last epochs averaged (SWA); default: --last-epochs for pcmepp and mean_only, else 0",
        source="PCME++, section 3.1",
    )
    test_similarities: tuple[str, ...] = differs(("own", "euclidean"), source="PCME++, table C.4")

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "weights", self.network)
        is_new = self.method in ("pcmepp", "mean_only")  # baselines and table 4 go without
        alpha = 0.1 if self.data_dir else 0.02
        is_pcme = self.method == "pcme"
        for name, value in (
            ("pseudo_positive_weight", alpha if is_new else 0),
            ("mixed_share", 0.25 if is_new else 0),
            ("averaged_epochs", self.last_epochs if is_new else 0),
            ("kl_weight", 1e-3 if is_pcme else 1e-4),
            ("pair_reduction", "sum" if is_pcme else "mean"),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.cache_features and self.is_clip:
            raise ValueError(
                "--cache-features needs a convolutional backbone; CLIP's last blocks are trained"
            )
        if self.variance_blocks > 1 and not self.is_clip:
            raise ValueError(f"--variance-blocks needs a CLIP backbone; received {self.network}")
        if self.variance_blocks < 1:
            raise ValueError(
                f"--variance-blocks must be at least 1; received {self.variance_blocks}"
            )
        if self.toy_images is not None and not (self.toy == "scenes" and self.data_dir is None):
            raise ValueError("--toy-images is for --toy scenes without --data-dir")
        if self.toy_images is not None and self.toy_images < 10:
            raise ValueError(f"--toy-images must be at least 10; received {self.toy_images}")
        in_training = self.warm_up_epochs + self.last_epochs if self.training_epochs else 0
        if self.frozen_epochs + self.mean_epochs + in_training > self.epochs:
            raise ValueError(
                "--epochs must hold the frozen, the means', the warm-up and the last epochs"
            )

    @property
    def training_epochs(self):
        """The epochs of everything, after those of the means and of a frozen backbone."""
        return self.epochs - self.frozen_epochs - self.mean_epochs

    @property
    def network(self):
        """The name of the image backbone."""
        return self.backbone or ("vit_b_32" if self.data_dir else "tiny")

    @property
    def is_clip(self):
        """Whether the image backbone is one of CLIP's transformers."""
        return self.network in encoders.CLIP and self.network not in encoders.CONVOLUTIONAL

    @property
    def is_probabilistic(self):
        """Whether the method learns a variance of each item."""
        return self.method in ("pcmepp", "wasserstein_2", "pcme")
