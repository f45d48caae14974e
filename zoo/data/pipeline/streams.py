"""Streams: a split's training batches from any step on, as `fit` takes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from zoo.data.pipeline.augmentation import Augmentation
from zoo.data.pipeline.batches import class_pairs, images_with_captions
from zoo.data.pipeline.mixing import mix_batches
from zoo.data.records.sources import Split


@dataclass(frozen=True)
class Stream:
    """A function from the first step to an endless `tf.data.Dataset` of training batches.

    ```python
    split = zoo.data.open({"loader": "toy_birds"}, "train")
    words = zoo.data.word_tokenizer(split.records.captions)
    stream = zoo.data.Stream(zoo.data.batches.class_pairs, split, words, batch_size=8)
    model.fit(stream(0), steps_per_epoch=stream.steps_per_epoch)
    ```

    Args:
        make: `batches.class_pairs`, `batches.image_caption_pairs` or
            `batches.images_with_captions`.
        split: the training `Split`.
        tokenizer: strings to ids.
        batch_size: what `make` counts; cut to as much as the split has.
        seed: of everything random, see `phase_seed`.
        augmentation: an `Augmentation`.
        steps: batches an epoch; None: all that there are.
        options: further ones of `make`.

    Call arguments:
        start_step: the first step, so that a resumed run continues there.
        shard: `(index, count)`, the piece of each batch to make.
    """

    make: Callable
    split: Split
    tokenizer: Any
    batch_size: int
    seed: int = 0
    augmentation: Augmentation | None = None
    steps: int | None = None
    options: dict = field(default_factory=dict)

    def __call__(self, start_step: int = 0, shard: tuple[int, int] = (0, 1)) -> Any:
        return self.make(
            self.split.records,
            self.tokenizer,
            self.split.source,
            batch_size=self.size,
            seed=self.seed,
            start_step=start_step,
            augmentation=self.augmentation,
            shard=shard,
            **self.options,
        )

    @property
    def most(self) -> int:
        """The largest batch that the split has."""
        records = self.split.records
        if self.make is class_pairs:
            return self.options.get("pairs_per_class", 1) * records.num_classes
        by_image = self.make is images_with_captions
        return records.num_images if by_image else records.num_captions

    @property
    def size(self) -> int:
        """What is in a batch: `batch_size`, or as much as there is."""
        return min(self.batch_size, self.most)

    @property
    def steps_per_epoch(self) -> int:
        if self.steps:
            return self.steps
        records = self.split.records
        by_image = self.make is images_with_captions
        return (records.num_images if by_image else records.num_captions) // self.size


@dataclass(frozen=True)
class MixedStream:
    """A `Stream` whose images are mixed with others of their batch, see `mix_batches`.

    ```python
    mixed = zoo.data.MixedStream(stream, share=0.25)  # of a `Stream`
    model.fit(mixed(0), steps_per_epoch=mixed.steps_per_epoch)
    ```

    It takes no `shard`: a mixed row depends on other rows of its batch.

    Args:
        stream: what is mixed.
        share: of the images.
        options: further ones of `mix_batches`: `alpha`, `mixup`, `whole_batches`.
    """

    stream: Stream
    share: float
    options: dict = field(default_factory=dict)

    def __call__(self, start_step: int = 0) -> Any:
        given = {"seed": self.stream.seed, "start_step": start_step, **self.options}
        return mix_batches(self.stream(start_step), self.share, **given)

    @property
    def size(self) -> int:
        """What is in a batch."""
        return self.stream.size

    @property
    def steps_per_epoch(self) -> int:
        return self.stream.steps_per_epoch


def phase_seed(seed: int, phase: str, phases: Sequence[str]) -> int:
    """The seed of a phase's batches: the phases of a run must not repeat each other's.

    Args:
        seed: of the run.
        phase: its name.
        phases: the names of all phases of a run.
    """
    return len(phases) * seed + phases.index(phase)
