"""ProLIP's inclusion with masked inputs: what is shown or said in part includes the whole."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.losses.auxiliary import Auxiliary
from zoo.losses.base import positive
from zoo.losses.inclusion import inclusion_loss

GRID = 7  # cells a side that pictures and maps are masked by


@keras.saving.register_keras_serializable(package="halo")
class MaskedInclusion(Auxiliary):
    """−log σ(scale · (inclusion of the whole in its masked part − the other way round)).

    Most of each picture and most words of each caption are hidden, and what is left is encoded
    again: it leaves more open, so its Gaussian is to include that of the whole. Mean over items and
    over both sides. A training step encodes everything twice.

    ```python
    points = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    term = zoo.losses.MaskedInclusion()
    images, ids = term.masked_inputs(np.ones((2, 28, 28, 3), "float32"), np.full((2, 4), 5))
    term(points, points, masked={"images": points, "captions": points})  # log 2: as likely as not
    ```

    Args:
        weight: of the term.
        scale: of the comparison; ProLIP takes 1000.
        rate: share of a picture's cells and of a caption's words that are hidden; ProLIP's is 0.75.
        unknown: id that stands for a hidden word.
        special: ids that are never hidden: padding, and such as that of the end. See
            `tokenizer.word_ids`.
        seed: of what is hidden.
        name: under which it is logged.

    Call arguments:
        images, captions: Gaussians `(N, dim)`, `(M, dim)`.
        masked: a dict of the Gaussians of the masked `images` and `captions`, `(N, dim)` and
            `(M, dim)`; `DualEncoder` encodes what `masked_inputs` gives.

    Output: a float32 scalar, unweighted.

    Raises:
        ValueError: if the scale is not positive, the rate not in (0, 1), or the inputs are vectors,
            of which no part can be hidden.

    Reference: ProLIP (Chun et al., ICLR 2025), section on the inclusion loss.

    Paper differs: there hidden tokens are left out of the transformer, for an eighth of the batch.
        Here any encoder is served: hidden cells of a 7 × 7 grid take the picture's mean, hidden
        words the id of an unknown one, for the whole batch.
    """

    reads = ("masked",)

    def __init__(
        self,
        weight: float = 1e-7,
        scale: float = 1000.0,
        rate: float = 0.75,
        unknown: int = 1,
        special: tuple[int, ...] = (0,),
        seed: int | None = None,
        name: str = "masked_inclusion",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        if not 0 < rate < 1:
            raise ValueError(f"`rate` must be in (0, 1); received {rate}")
        self.scale = positive("scale", scale)
        self.rate, self.unknown, self.special = float(rate), int(unknown), tuple(special)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def masked_inputs(self, images: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Images `(N, height, width, channels)` and ids `(M, length)` with much of them hidden."""
        images, ids = ops.convert_to_tensor(images), ops.convert_to_tensor(ids)
        if len(images.shape) != 4 or not keras.backend.is_int_dtype(ids.dtype):
            raise ValueError(
                "`images` must be pictures or maps (N, height, width, channels) and `ids` whole "
                f"numbers, to hide a part of them; received shape {tuple(images.shape)} and "
                f"{ids.dtype}"
            )
        shape = ops.shape(images)
        drawn = keras.random.uniform((shape[0], GRID, GRID), seed=self.seed_generator)
        rows, columns = (ops.arange(size) * GRID // size for size in shape[1:3])
        hidden = ops.take(ops.take(drawn, rows, axis=1), columns, axis=2) < self.rate
        mean = ops.mean(ops.cast(images, "float32"), axis=(1, 2), keepdims=True)
        shown = ops.where(hidden[..., None], ops.cast(mean, images.dtype), images)
        lost = keras.random.uniform(ops.shape(ids), seed=self.seed_generator) < self.rate
        for one in self.special:
            lost = ops.logical_and(lost, ids != one)
        return shown, ops.where(lost, ops.cast(self.unknown, ids.dtype), ids)

    def call(self, images: Embedding, captions: Embedding, masked: dict[str, Embedding]) -> Tensor:
        sides = ((images, masked["images"]), (captions, masked["captions"]))
        return 0.5 * sum(inclusion_loss(whole, part, self.scale) for whole, part in sides)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "scale": self.scale,
            "rate": self.rate,
            "unknown": self.unknown,
            "special": self.special,
            "seed": self.seed,
        }
