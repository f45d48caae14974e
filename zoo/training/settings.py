"""The flags of training runs: those of every run, and those of every retrieval model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from halo_search.files.decoding import RESIZING
from zoo import cli, losses, similarities
from zoo.cli import Positive, Share, Size, setting
from zoo.data.pipeline.streams import Stream
from zoo.data.records.sources import Split
from zoo.encoders.convolutional import FROM_SCRATCH
from zoo.images.pictures import RESIZES
from zoo.metrics.cider_factors import VARIANTS
from zoo.similarities import by_name

OWN = "own"  # the similarity that the model was trained with
UNSAID = ""  # weights of a backbone that no flag has named
# Help of fields that several recipes have.
IMAGE_WEIGHTS = "'imagenet', a local file, or none; required with --data-dir"
CUB_CAPTIONS = "text_c10 folder or archive; default: in --data-dir"
CUB_HELD_OUT = (
    "classes to evaluate on: the unseen ones, held-out images of the seen ones, or, to choose "
    "settings on, val1 to val3"
)
CUB_SPLITS = ("test", "seen_test", "val1", "val2", "val3")


def check_weights(settings: Any, name: str, network: str | None) -> None:
    """Replaces `UNSAID` by None, which is random weights. Raises ValueError if that would train a
    network that needs pretrained weights on real data: random weights need `none`."""
    if getattr(settings, name) != UNSAID:
        return
    if settings.data_dir is not None and network not in (None, *FROM_SCRATCH):
        flag = "--" + name.replace("_", "-")
        raise ValueError(
            f"{flag} must be a local file, 'imagenet' where Keras has them, or none, which trains "
            f"{network} from random weights; received nothing"
        )
    object.__setattr__(settings, name, None)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The flags that every recipe has.

    ```python
    zoo.cli.parse(zoo.training.RunSettings, ["--out=runs/mine", "--seed=1"])
    ```
    """

    data_dir: Path | None = setting(
        None, "folder of the real data set; without it, the recipe runs on drawn toy data"
    )
    out: Path | None = setting(None, "run folder to write or resume", identity=False)
    smoke: bool = setting(False, "smoke test; takes seconds")
    strategy: Literal["one", "mirrored", "multi_worker", "tpu"] = setting(
        "one",
        "training on one device, all devices of this host, several hosts, or TPUs",
        identity=False,
    )
    mixed_precision: Literal["mixed_bfloat16", "mixed_float16"] | None = setting(
        None, "Keras' policy for the encoders", const="mixed_bfloat16"
    )
    tensor_float_32: bool = setting(
        False, "let GPUs round the factors of float32 products to 10 bits: faster, less exact"
    )
    jit_compile: Literal["auto", "on", "off"] = setting(
        "auto", "compile the step by XLA; auto: on one GPU", identity=False, const="on"
    )
    seed: int = setting(0, "seed of weights, batches, augmentation and sampling")

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        cli.inherit(cls)


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings(RunSettings):
    """The flags of every retrieval model: data, batches, semantic precision (DAA), and rankings.

    ```python
    @dataclass(frozen=True, kw_only=True)
    class Settings(zoo.training.RetrievalSettings):
        dim: int = zoo.cli.setting(512, "of the embedding", source="PCME, section 4")
    ```
    """

    daa_weight: float = setting(0.0, "weight of semantic precision (DAA) in the loss; 0: none")
    smooth_ap_weight: float = setting(
        0.0, "weight of Smooth-AP in the loss, DAA's baseline; 0: none"
    )
    daa_temperature: Positive = setting(
        0.01,
        "temperature of both losses' ranks, in units of the similarity they rank",
        source="DAA, released code",
    )
    semantic_temperature: Positive | None = setting(
        None,
        "temperature of the ranks by semantics; default: the same",
        source="DAA, released code",
    )
    daa_samples: int = setting(
        0, "samples per Gaussian to rank by, as in DAA; 0: rank by the model's own logits"
    )
    semantics: Literal[VARIANTS] = setting(
        "cider", "semantic similarity of captions, for DAA and ASP"
    )
    asp: bool = setting(False, "measure ASP, the average semantic precision, after each epoch")
    skip_bad: bool = setting(False, "leave out unreadable records of the data, and count them")
    held_out: Literal["test", "val"] = setting(
        "test", "split to evaluate on; choose settings on val"
    )
    select: Literal["best", "last"] = setting(
        "best", "which weights to keep: those of the best validation, or the last"
    )
    annotations_dir: Path | None = setting(
        None,
        "files of ECCV Caption, for COCO's 1K, 5K, CxC and ECCV metrics; PMRP too, if --data-dir "
        "has annotations/instances_val2014.json",
        identity=False,
    )
    image_size: Size = setting(224, "side in pixels", toy=64)
    resize: Literal[RESIZES] = setting(
        "crop", "how a photo becomes a square: crop its middle, or stretch all of it"
    )
    crop_fraction: Share = setting(
        1.0, "side of the cropped middle, as a share of the shorter side"
    )
    max_words: Size = setting(40, "words per caption; the rest is cut off", toy=24)
    batch_size: Size = setting(128, "pairs per batch, or images with all their captions")
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: all pairs once", smoke=2
    )
    test_similarities: tuple[str, ...] = setting(
        (OWN,), f"rankings: {OWN}, {', '.join(similarities.NAMES)}"
    )

    def __post_init__(self):
        if not 0 < self.crop_fraction <= 1:
            raise ValueError(f"--crop-fraction must be in (0, 1]; received {self.crop_fraction}")
        for name in set(self.test_similarities) - {OWN}:
            try:
                by_name.check_name(name)
            except ValueError as error:
                raise ValueError(f"--test-similarities: {error}") from error

    def ranking_terms(self):
        """The terms that these flags add to a model, for `DualEncoder.with_auxiliaries`."""
        precision = losses.SemanticPrecision(self.daa_temperature, self.semantic_temperature)
        smooth_ap = losses.SmoothAveragePrecision(self.daa_temperature)
        weights = ((precision, self.daa_weight), (smooth_ap, self.smooth_ap_weight))
        return [
            losses.AuxiliaryRanking(loss, weight, self.daa_samples or None, self.seed)
            for loss, weight in weights
            if weight
        ]

    def picture_options(self) -> dict[str, Any]:
        """The options of a loader of pictures, for `describe_data`: the size, and how a photo is
        resized where that differs from the loaders' default."""
        resizing = {name: getattr(self, name) for name in RESIZING}
        changed = {name: value for name, value in resizing.items() if value != RESIZING[name]}
        return {"image_size": self.image_size, **changed}

    def describe_data(self, loader: str, toy: str, **options: Any) -> dict[str, Any]:
        """The description of the data for `zoo.data.open`: the loader (`loader` with `--data-dir`,
        else `toy`) and its options. An option that is None is left out."""
        description = {
            "loader": toy if self.data_dir is None else loader,
            "root": self.data_dir,
            "held_out": self.held_out,
            "skip_bad": self.skip_bad or None,
            **options,
        }
        splits_for_loss = ["train"] if self.daa_weight else []
        splits_for_asp = ["validation", "test"] if self.asp else []
        splits = splits_for_loss + splits_for_asp
        if splits:
            description["semantics"] = {"variant": self.semantics, "splits": splits}
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in description.items()
            if value is not None
        }

    def stream(
        self,
        make: Callable,
        split: Split,
        tokenizer: Any,
        seed: int,
        augmentation: Any = None,
        **options: Any,
    ) -> Stream:
        """The batches of a phase, with `--batch-size` and `--steps-per-epoch`.

        Args:
            make: a function of `zoo.data.batches`, such as `batches.image_caption_pairs`.
            split, tokenizer, seed, augmentation: see `zoo.data.Stream`.
            options: further arguments of `make`.
        """
        return Stream(
            make,
            split,
            tokenizer,
            batch_size=self.batch_size,
            seed=seed,
            augmentation=augmentation,
            steps=self.steps_per_epoch,
            options=options,
        )

    def evaluation(self) -> dict[str, Any]:
        """What to measure on the test split, for `zoo.training.finish`."""
        return {"similarities": self.test_similarities, **self.benchmark()}

    def benchmark(self) -> dict[str, Any]:
        """The files of COCO's benchmark: those of ECCV Caption, and the instances for PMRP."""
        # Karpathy's validation and test images are all of val2014.
        instances = self.data_dir and self.data_dir / "annotations" / "instances_val2014.json"
        return {
            "annotations_dir": self.annotations_dir,
            "instances": instances if instances and instances.is_file() else None,
        }
