"""The flags of every recipe that trains a retrieval model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo import similarities
from zoo.cli import setting
from zoo.recipe.ranking_terms import RankingSettings

OWN = "own"  # the similarity that the model was trained with


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings(RankingSettings):
    """What to read, how much of it to show the model, and how to rank in the end."""

    skip_bad: bool = setting(False, "leave out what is bad in the data, and count it")
    held_out: Literal["test", "val"] = setting(
        "test", "the split to evaluate on; choose settings on val"
    )
    annotations_dir: Path | None = setting(
        None, "files of ECCV Caption, for COCO's 1K, 5K, CxC and ECCV metrics", identity=False
    )
    image_size: int = setting(224, "pixels", toy=64)
    max_words: int = setting(40, "words of a caption that are read", toy=24)
    batch_size: int = setting(128, "pairs, or images with all their captions")
    steps_per_epoch: int | None = setting(None, "default: all there are", smoke=2)
    test_similarities: tuple[str, ...] = setting(
        (OWN,), f"rankings: {OWN}, {', '.join(similarities.NAMES)}"
    )

    def __post_init__(self):
        unknown = set(self.test_similarities) - {OWN, *similarities.NAMES}
        if unknown:
            raise ValueError(f"--test-similarities: unknown {sorted(unknown)}")
