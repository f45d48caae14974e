"""Streams: a split's training batches from any step on, as `fit` takes them, and mixed images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from zoo.data.pipeline.augmentation import Augmentation
from zoo.data.pipeline.batches import class_pairs, images_with_captions
from zoo.data.records.sources import Split
from zoo.images.seeding import step_seed, uniform

_CHOICE, _KIND, _SHARE, _PLACE = 41, 42, 43, 44


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
        split, tokenizer: the training `Split`, and strings to ids.
        batch_size: what `make` counts; cut to as much as the split has.
        seed: of everything random, see `phase_seed`.
        augmentation: an `Augmentation`.
        steps: batches an epoch; None: all that there are.
        options: further ones of `make`.
        mixing: those of `mix_batches`; then the stream makes whole batches alone.
    Call arguments: the first step, where a resumed run continues; shard, `(index, count)`, the
        piece of each batch to make.
    """

    make: Callable
    split: Split
    tokenizer: Any
    batch_size: int
    seed: int = 0
    augmentation: Augmentation | None = None
    steps: int | None = None
    options: dict = field(default_factory=dict)
    mixing: dict | None = None

    def __call__(self, start_step: int = 0, shard: tuple[int, int] = (0, 1)) -> Any:
        batches = self.make(
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
        if self.mixing is None:
            return batches
        return mix_batches(batches, seed=self.seed, start_step=start_step, **self.mixing)

    @property
    def _rows(self):
        """What an epoch counts: images for `images_with_captions`, else captions."""
        records, by_image = self.split.records, self.make is images_with_captions
        return records.num_images if by_image else records.num_captions

    @property
    def size(self) -> int:
        """Rows of a batch: `batch_size`, or fewer where the data have fewer."""
        most = self._rows
        if self.make is class_pairs:
            most = self.options.get("pairs_per_class", 1) * self.split.records.num_classes
        return min(self.batch_size, most)

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch; incomplete ones are left out."""
        return self.steps or self._rows // self.size


def phase_seed(seed: int, phase: str, phases: Sequence[str]) -> int:
    """The seed of the batches of a phase among the names of all: none repeats another's."""
    return len(phases) * seed + phases.index(phase)


def mix_batches(
    batches, share=0.25, alpha=2.0, seed=0, start_step=0, mixup=0.5, whole_batches=False
):
    """Mixes some images of every batch with others, and says how much each caption still fits.

    Each step draws a `share` of the images. Each of them is mixed with the image at the same place
    in the reversed batch, by Mixup or by CutMix, which is drawn once per batch; λ ~ Beta(α, α), one
    per image. Row v of the labels becomes λ · own row + (1 − λ) · partner's row.
    Rows hold *all* true matches: `matches` float32 `(N, M)` is added, which wins over the labels,
    and `semantic`, where there is one, is mixed likewise. `mixup` is the probability of Mixup: 1 is
    Mixup alone, 0 CutMix alone. `whole_batches` mixes all images of a batch with the probability
    `share`, and none otherwise, which table C.3 has as not "in-batch".

    Reference: Zhang et al., "mixup", ICLR 2018; Yun et al., "CutMix", ICCV 2019; PCME++ (Chun,
        ICLR 2024), section 2.4 and table C.3.
    Released code differs: a mixed row has two positives only, its own caption and its partner's;
        other true matches become negatives.
    """

    def mix(step, batch):
        key = step_seed(seed, step)
        images, share_of_own = mix_images(batch["images"], share, alpha, key, mixup, whole_batches)
        matches = tf.equal(batch["image_labels"][:, None], batch["caption_labels"][None, :])
        mixed = {
            **batch,
            "images": images,
            "matches": mix_matches(tf.cast(matches, tf.float32), share_of_own),
        }
        if "semantic" in batch:
            mixed["semantic"] = mix_matches(batch["semantic"], share_of_own)
        return mixed

    steps = tf.data.Dataset.range(start_step, tf.int64.max)
    mixed = tf.data.Dataset.zip(steps, batches).map(mix, num_parallel_calls=tf.data.AUTOTUNE)
    return mixed.prefetch(tf.data.AUTOTUNE)


def mix_images(images, share, alpha, seed, mixup=0.5, whole_batches=False):
    """Images, some mixed with their partners in the reversed batch, and λ `(batch,)`, the share
    that is each one's own: 1 where it is not mixed."""
    rows, height, width = images.shape[:3]
    choice = uniform(seed, _CHOICE, rows, 1)[:, 0]
    if whole_batches:
        chosen = tf.fill([rows], choice[0] < share)
    else:
        # Exactly `share` of the batch, so that no step is without mixed images, or with them only.
        chosen = tf.argsort(tf.argsort(choice)) < round(share * rows)
    lam = _beta(seed, rows, alpha)
    by_mixup = uniform(seed, _KIND, 1, 1)[0, 0] < mixup
    partner = tf.reverse(images, [0])
    # Mixup takes 1 − λ of every pixel, CutMix all of the pixels in a box of that area.
    box = _box(1.0 - lam, uniform(seed, _PLACE, rows, 2), height, width)
    taken = tf.where(by_mixup, (1.0 - lam)[:, None, None], box)
    taken = tf.where(chosen[:, None, None], taken, 0.0)
    lam = 1.0 - tf.reduce_mean(taken, axis=(1, 2))
    mixed = images + taken[..., None] * (partner - images)
    # Without rounding errors where nothing is mixed.
    lam = tf.where(chosen, lam, 1.0)
    return mixed, lam


def mix_matches(matches, lam):
    """The labels `(N, M)` of mixed images: λ · own row + (1 − λ) · row of the reversed batch."""
    lam = lam[:, None]
    return lam * matches + (1.0 - lam) * tf.reverse(matches, [0])


def _beta(seed, rows, alpha):
    """λ ~ Beta(α, α), float32 (rows,), from two gamma draws each."""
    key = tf.random.fold_in(seed, _SHARE, alg="philox")
    parts = tf.random.stateless_gamma((2, rows), key, alpha=alpha)
    return parts[0] / (parts[0] + parts[1])


def _box(area, place, height, width):
    """1.0 in a rectangle of about that share of each image and of its shape, else 0.0."""

    def inside(place, size):
        length = tf.round(tf.sqrt(area) * size)
        start = tf.floor(place * (size - length + 1.0))
        position = tf.range(size, dtype=tf.float32)[None]
        return (position >= start[:, None]) & (position < (start + length)[:, None])

    rows, columns = inside(place[:, 0], height), inside(place[:, 1], width)
    return tf.cast(rows[:, :, None] & columns[:, None, :], tf.float32)
