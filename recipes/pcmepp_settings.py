"""The settings of PCME++, for the recipes that share them: COCO, noisy COCO and RedCaps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo import encoders, similarities, training
from zoo.cli import setting

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

    out: Path = setting(Path("runs/pcmepp_coco"), "run folder to write or resume", identity=False)
    toy: Literal["birds", "scenes"] = setting("birds", "the drawn data, without --data-dir")
    toy_images: int | None = setting(None, "scenes to draw for --toy scenes; default: 1200")
    method: Literal[METHODS] = setting("pcmepp", "what to train on these towers")
    backbone: Literal[BACKBONES] | None = setting(
        None, "CLIP's ViT or a convolutional network; default: vit_b_32, tiny on the toy data"
    )
    weights: str | None = setting(None, "of the backbone: a local file of CLIP's, or none")
    bpe: Path | None = setting(None, "CLIP's bpe_simple_vocab_16e6.txt.gz, for a CLIP backbone")
    image_size: int = setting(224, "pixels", source="appendix B", toy=32)
    dim: int = setting(1024, "dimensions of the embedding", source="appendix B", toy=64)
    word_dim: int = setting(300, "of a word vector, without CLIP", toy=64)
    max_words: int = setting(77, "tokens of a caption that are read", toy=20)
    scale: float = setting(5.0, "initial a of b - a CSD", source="section 3.2")
    shift: float = setting(5.0, "initial b", source="section 3.2")
    pseudo_positive_weight: float = setting(0.1, "alpha; 0: none", source="section 3.1", toy=0.02)
    kl_weight: float = setting(1e-4, "beta of VIB; 0: none", source="section 4.1")
    kl_reduction: Literal["mean", "mean_per_dimension"] = setting(
        "mean_per_dimension",
        "VIB of an item: summed over dim, or its mean, as in the code of the paper's results",
        source="released code",
        toy="mean",
    )
    pooling: Literal["generalized", "mean"] = setting("generalized", "GPO or the mean")
    mixed_share: float = setting(0.25, "images mixed by Mixup or CutMix", source="section 3.3")
    drop_rate: float = setting(0.2, "visual tokens left out", source="appendix B")
    word_dropping: float = setting(0.2, "words masked, replaced, deleted", source="appendix B")
    crop_and_flip: bool = setting(True, "random resized crop and mirroring", toy=False)
    log_variance_bias: float | None = setting(
        None, "initial log variance; default: -log(dim) - 3", toy=-5.0
    )
    margin: float = setting(0.2, "of the triplet loss of vse_infinity", source="VSE++")
    learning_rate: float = setting(5e-4, "of AdamP", source="appendix B", toy=2e-3)
    image_rate: float = setting(0.01, "factor of the image backbone", source="B", toy=1.0)
    caption_rate: float = setting(0.1, "factor of the text backbone", source="B", toy=1.0)
    layer_decay: float = setting(0.7, "factor from a block to the one below", source="B")
    weight_decay: float = setting(1e-4, "but for scale and shift", source="appendix B")
    clip_norm: float = setting(2.0, "largest norm of a gradient", source="appendix B")
    batch_size: int = setting(128, "pairs", source="appendix B", toy=90)
    steps_per_epoch: int | None = setting(None, "default: captions / batch", toy=60, smoke=2)
    cache_features: bool = setting(
        False, "while a convolutional backbone is frozen, train on its stored features, uncropped"
    )
    frozen_epochs: int = setting(2, "image backbone frozen", source="B", toy=0, smoke=1)
    warm_up_epochs: int = setting(1, "linear, after these", source="appendix B", smoke=1)
    mean_epochs: int = setting(
        0,
        "first, the means alone, where no weights of CLIP's are there to start from",
        toy=16,
        smoke=0,
    )
    epochs: int = setting(25, "in all", source="appendix B", toy=48, smoke=3)
    last_epochs: int = setting(10, "at a tenth of the rate", source="B", toy=6, smoke=1)
    averaged_epochs: int = setting(10, "of SWA; 0: none", source="section 4.1", toy=6, smoke=1)
    test_similarities: tuple[str, ...] = setting(
        ("own", "euclidean"), f"rankings: own, {', '.join(similarities.NAMES)}", source="table C.4"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.toy_images is not None and not (self.toy == "scenes" and self.data_dir is None):
            raise ValueError("--toy-images is for --toy scenes without --data-dir")
        if self.toy_images is not None and self.toy_images < 10:
            raise ValueError(f"--toy-images must be at least 10; received {self.toy_images}")
        phases = self.frozen_epochs + self.mean_epochs + self.warm_up_epochs + self.last_epochs
        if phases > self.epochs:
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
        return self.network in encoders.CLIP and self.network not in encoders.CONVOLUTIONAL

    @property
    def is_probabilistic(self):
        return self.method in ("pcmepp", "wasserstein_2", "pcme")
