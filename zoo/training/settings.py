"""The flags that every training run has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo.cli import setting


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The flags that every recipe has."""

    data_dir: Path | None = setting(
        None, "folder of the real data set; without it the recipe runs on the embedded toy data"
    )
    out: Path | None = setting(None, "run folder to write or to resume", identity=False)
    smoke: bool = setting(False, "a run of seconds that only shows that everything works")
    strategy: Literal["one", "mirrored", "multi_worker", "tpu"] = setting(
        "one", "where to train: one device, all of this host, several hosts, TPUs", identity=False
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
    gradient_accumulation: int = setting(
        1, "pieces of a batch, one step for all: less memory, negatives of a piece only"
    )
    tensorboard: bool = setting(False, "write logs for TensorBoard", identity=False)
    seed: int = setting(0, "seed of weights, batches, augmentation and sampling")
