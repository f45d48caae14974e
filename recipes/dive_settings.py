"""The settings of DivE and PVSE, for COCO and Flickr30K, by the features of images."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from zoo import encoders, models, training
from zoo.cli import Positive, Share, Size, differs, setting
from zoo.data.pipeline.augmentation import RandomCrop
from zoo.images.pictures import RESIZES
from zoo.layers.slot_attention import NORMALIZE_OVER
from zoo.losses.ranking import MINING
from zoo.training.settings import IMAGE_WEIGHTS, UNSAID, check_weights

FEATURES = ("resnet152", "regions", "resnext_bert")
NETWORKS = {"resnet152": "resnet152", "resnext_bert": "resnext101_32x8d"}


class Protocol(NamedTuple):
    """The settings that depend on `--features`.

    Without a `drop_epoch` the rate falls as a cosine over the epochs of everything.
    """

    margin: float
    learning_rate: float
    epochs: int
    frozen_epochs: int = 0
    drop_epoch: int | None = None
    image_rate: float = 1.0
    clip_norm: float = 2.0
    image_size: int = 224
    resize: str = "crop"
    crop_fraction: float = 1.0
    smallest_part: float = 0.08
    num_heads: int = 1
    head_dim: int | None = None


PROTOCOLS = {
    "regions": Protocol(margin=0.2, learning_rate=1e-3, epochs=80, clip_norm=1.0),
    "resnet152": Protocol(  # PVSE's, in DivE's code: its option pvse_cosine
        margin=0.1, learning_rate=2e-4, epochs=60, frozen_epochs=30, crop_fraction=224 / 256
    ),
    # VSE∞'s for grids; epochs, drop and heads as DivE's author posted them (issue 4 of its code).
    "resnext_bert": Protocol(
        margin=0.1,
        learning_rate=5e-4,
        epochs=50,
        drop_epoch=20,
        num_heads=8,
        head_dim=256,
        image_rate=0.01,
        image_size=512,
        resize="stretch",
        smallest_part=0.36,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The paper's settings for COCO; `toy` is what runs on Toy Scenes."""

    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    out: Path = differs(Path("runs/dive_coco"))
    ensemble: tuple[str, ...] = setting((), "finished runs to average instead of training")
    method: Literal["dive", "pvse"] = setting("dive", "what makes the sets: slots or PIE-Net")
    features: Literal[FEATURES] = setting(
        "resnet152", "image features; resnext_bert also reads captions by BERT", toy="regions"
    )
    backbone: Literal[encoders.CONVOLUTIONAL] | None = setting(
        None, "image network, if not the one of --features", toy="tiny"
    )
    bert: Path | None = setting(None, "folder of BERT's preset, for resnext_bert")
    bert_vocabulary: Path | None = setting(None, "BERT's vocab.txt")
    glove: Path | None = setting(None, "text file of word vectors to start from")
    image_size: Size | None = setting(
        None,
        "side in pixels; default: 512 for resnext_bert, else 224",
        source="DivE, section 4.3",
        toy=64,
    )
    resize: Literal[RESIZES] | None = setting(
        None,
        "how a photo becomes a square; default: stretch it for resnext_bert, else crop",
        source="DivE, released code",
        toy="crop",
    )
    crop_fraction: Share | None = setting(
        None,
        "side of the crop, as a share of the shorter side; default: 0.875 for resnet152, else 1",
        source="DivE, released code",
        toy=1.0,
    )
    crop_and_flip: bool = setting(
        True,
        "train on random crops of the original pictures, mirrored half of the time",
        source="DivE, released code",
        toy=False,
    )
    max_words: Size = differs(40, toy=48)
    dim: Size = setting(1024, "dimensions of an element", source="DivE, section 4.2", toy=64)
    word_dim: Size = setting(
        300, "dimensions of a word vector", source="DivE, released code", toy=64
    )
    num_slots: Size = setting(4, "elements per set, K", source="DivE, section 4.2")
    num_iterations: Size = setting(4, "rounds of aggregation, T", source="DivE, section 4.2")
    normalize_over: Literal[NORMALIZE_OVER] = setting(
        "slots",
        "what the attention's softmax runs over; a transformer's runs over positions",
        source="DivE, table 3",
    )
    num_heads: Size | None = setting(
        None,
        "heads of the slots' attention; default: 8 for resnext_bert, else 1",
        source="DivE, released code",
        toy=1,
    )
    head_dim: Size | None = setting(
        None,
        "width of a head; default: 256 for resnext_bert, else the paper's",
        source="DivE, released code",
    )
    similarity: Literal[models.SET_SIMILARITIES] | None = setting(
        None,
        "similarity of sets; default: maximum_pair for pvse, else smooth_chamfer",
        source="DivE, table 3",
    )
    alpha: Positive = setting(16.0, "sharpness of smooth-Chamfer", source="DivE, section 4.2")
    margin: float | None = setting(
        None,
        "margin of the triplet loss; default: 0.2 for regions, else 0.1",
        source="DivE, section 4.2",
    )
    mining: Literal[MINING] = setting(
        "hardest",
        "which negatives the triplet loss takes after the warm-up",
        source="DivE, released code",
        toy="sum",
    )
    discrepancy_weight: float = setting(0.01, "weight of the MMD loss", source="DivE, section 4.2")
    diversity_weight: float | None = setting(
        None,
        "weight of the diversity loss; default: 0.1 for pvse, else 0.01",
        source="DivE, section 4.2",
    )
    dropout: Share = setting(
        0.1,
        "dropout rate of regions, words, sentences and in the slots",
        source="DivE, released code",
    )
    drop_rate: Share = setting(0.2, "share of regions left out", source="DivE, released code")
    word_dropping: Share = setting(
        0.2, "probability that a word is masked, replaced or deleted", source="DivE, released code"
    )
    learning_rate: float | None = setting(
        None,
        "peak learning rate; default: 1e-3 for regions, 2e-4 for resnet152, else 5e-4",
        source="DivE, section 4.2; DivE, released code; VSE∞, released code",
        toy=4e-3,
    )
    set_rate: float = setting(
        0.1,
        "factor of the learning rate of images' layers but the network, and of captions' slots",
        source="DivE, released code",
        toy=1.0,
    )
    image_rate: float | None = setting(
        None,
        "factor of the image network's learning rate; default: 0.01 for resnext_bert, else 1",
        source="VSE∞, released code",
        toy=1.0,
    )
    caption_rate: float = setting(
        0.1, "factor of BERT's learning rate", source="VSE∞, released code", toy=1.0
    )
    weight_decay: float = setting(1e-4, "weight decay of AdamW", source="DivE, released code")
    clip_norm: Positive | None = setting(
        None,
        "gradients with a larger norm are scaled to it; default: 1 for regions, else 2",
        source="DivE, released code",
        toy=1.0,
    )
    batch_size: Size = setting(
        200, "images per batch, with their captions", source="DivE, section 4.2", toy=64
    )
    captions_per_image: Size | None = setting(
        None,
        "captions per image, drawn anew each time; default: all",
        source="DivE, section 4.2",
        toy=2,
    )
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: images / batch size", smoke=2
    )
    warm_up_epochs: int = setting(
        1, "first epochs, which take all negatives, not the hardest", toy=0, smoke=1
    )
    frozen_epochs: int | None = setting(
        None,
        "of these, epochs with the image network frozen; default: 30 for resnet152, else 0",
        source="DivE, released code",
        toy=0,
    )
    epochs: Size | None = setting(
        None,
        "total number of epochs; default: 80 for regions, 60 for resnet152, else 50",
        source="DivE, section 4.2; DivE, released code",
        toy=40,
        smoke=2,
    )
    drop_epoch: int | None = setting(
        None,
        "epoch after which the rate is a tenth; default: 20 for resnext_bert, else cosine decay",
        source="DivE, released code",
    )

    def __post_init__(self):
        protocol = PROTOCOLS[self.features]._asdict()
        if self.data_dir is None or self.smoke:  # epochs of their own
            protocol |= {"drop_epoch": None, "frozen_epochs": 0, "head_dim": None}
        for name in protocol.keys() & {field.name for field in dataclasses.fields(self)}:
            if getattr(self, name) is None:
                object.__setattr__(self, name, protocol[name])
        super().__post_init__()
        without = self.ensemble or self.features == "regions"
        check_weights(self, "image_weights", None if without else self.network)
        if not 0 <= self.warm_up_epochs <= self.epochs:
            raise ValueError("--epochs must not be below --warm-up-epochs")
        if not 0 <= self.frozen_epochs <= self.epochs:
            raise ValueError("--epochs must not be below --frozen-epochs")
        if self.frozen_epochs and self.features == "regions":
            raise ValueError("--frozen-epochs needs an image network; regions have none")

    @property
    def crop(self):
        """The random parts of `--crop-and-flip`."""
        return RandomCrop(area=(PROTOCOLS[self.features].smallest_part, 1.0))

    @property
    def network(self):
        """The name of the network over pictures."""
        return self.backbone or NETWORKS.get(self.features)

    @property
    def set_similarity(self):
        """The name of the similarity of sets: as given, or that of `--method`."""
        return self.similarity or {"dive": "smooth_chamfer", "pvse": "maximum_pair"}[self.method]

    @property
    def set_diversity_weight(self):
        """The weight of the diversity loss: as given, or that of `--method`."""
        if self.diversity_weight is not None:
            return self.diversity_weight
        return {"dive": 0.01, "pvse": 0.1}[self.method]
