"""DivE's set prediction: learned slots that gather local features, and the global feature."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.layers.sinusoidal import map_encoding, sequence_encoding
from zoo.layers.slot_attention import SlotAttention


@keras.saving.register_keras_serializable(package="halo")
class SetPrediction(keras.layers.Layer):
    """A set of embeddings: LayerNorm(slots after attention) + LayerNorm(global).

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    zoo.layers.SetPrediction(num_slots=3)(features, features.mean(axis=1))  # (2, 3, 8)
    ```

    Args:
        num_slots: elements of the set (K).
        num_iterations: rounds of `SlotAttention`, of shared weights (T).
        encode_positions: whether the keys know where they are: in a feature map by row and
            column, in a sequence by the place relative to its length.
        num_heads, head_dim, mlp_ratio, normalize_over: as in `SlotAttention`.

    Call arguments:
        features: local features, a map `(batch, height, width, channels)` or a sequence
            `(batch, positions, channels)`.
        pooled: global feature `(batch, dim)`, which sets the dimension of the elements.
        mask: bool `(batch, positions)`, True where a position counts; for sequences only.
        return_attention: whether to return the last round's attention too.

    Output: `{"elements", "slots"}`, each `(batch, num_slots, dim)`, neither L2-normalised:
        the set, and its part without the global feature, which `zoo.losses.diversity` spreads;
        with `return_attention` also `"attention"`, the mean over heads, float32
        `(batch, num_slots, positions)`.

    Relations: the first slots are learned, not sampled as in Locatello et al.

    Reference: DivE (Kim et al., CVPR 2023), section 3.2 and figure 2.

    Released code differs: padded positions take part (see `SlotAttention`), places are relative
        to the padded length, and it has 4 heads of 512 channels.
    """

    def __init__(
        self,
        num_slots: int = 4,
        num_iterations: int = 4,
        encode_positions: bool = False,
        num_heads: int = 1,
        head_dim: int | None = None,
        mlp_ratio: int = 4,
        normalize_over: str = "slots",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if num_slots < 1:
            raise ValueError(f"`num_slots` must be a positive integer; received {num_slots}")
        self.num_slots = num_slots
        self.encode_positions = encode_positions
        policy = self.dtype_policy
        self.attention = SlotAttention(
            num_iterations,
            num_heads,
            head_dim,
            mlp_ratio,
            normalize_over,
            dtype=policy,
            name="attention",
        )
        self.normalize_slots, self.normalize_pooled = (
            keras.layers.LayerNormalization(epsilon=1e-5, dtype=policy, name=name)
            for name in ("normalize_slots", "normalize_pooled")
        )

    def build(self, features_shape, pooled_shape):
        if len(features_shape) not in (3, 4):
            raise ValueError(
                "`features` must be (batch, positions, channels) or (batch, height, width, "
                f"channels); received {tuple(features_shape)}"
            )
        dim = pooled_shape[-1]
        self.slots = self.add_weight(
            shape=(self.num_slots, dim),
            initializer=keras.initializers.RandomNormal(stddev=1.0),
            name="slots",
        )
        slots_shape = (None, self.num_slots, dim)
        self.attention.build(slots_shape, (None, None, features_shape[-1]))
        self.normalize_slots.build(slots_shape)
        self.normalize_pooled.build(pooled_shape)

    def call(
        self,
        features: Tensor,
        pooled: Tensor,
        mask: Tensor | None = None,
        return_attention: bool = False,
    ) -> Embedding:
        positions = self._positions(features, mask)
        shape = ops.shape(features)
        features = ops.reshape(features, (shape[0], -1, shape[-1]))
        slots = ops.broadcast_to(self.slots, (shape[0], *self.slots.shape))
        slots, attention = self.attention(
            slots, features, positions, mask=mask, return_attention=True
        )
        slots = self.normalize_slots(slots)
        elements = slots + ops.expand_dims(self.normalize_pooled(pooled), 1)
        outputs = {"elements": elements, "slots": slots}
        if return_attention:
            outputs["attention"] = ops.mean(attention, axis=1)
        return outputs

    def compute_output_spec(self, features, pooled, mask=None, return_attention=False):
        # Said, since to trace the rounds takes most of the time in which a model is built.
        batch, dtype = features.shape[0], self.compute_dtype
        shape = (batch, self.num_slots, pooled.shape[-1])
        outputs = {name: keras.KerasTensor(shape, dtype) for name in ("elements", "slots")}
        if return_attention:
            sides = features.shape[1:-1]
            positions = None if None in sides else math.prod(sides)
            attention = (batch, self.num_slots, positions)
            outputs["attention"] = keras.KerasTensor(attention, "float32")
        return outputs

    def _positions(self, features, mask):
        if not self.encode_positions:
            return None
        shape = ops.shape(features)
        if len(features.shape) == 4:
            return map_encoding(shape[1], shape[2], features.shape[-1])
        return sequence_encoding(shape[1], features.shape[-1], mask)

    def compute_mask(self, features, previous_mask):
        return None  # there are as many elements for every item

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "num_iterations": self.attention.num_iterations,
            "encode_positions": self.encode_positions,
            "num_heads": self.attention.num_heads,
            "head_dim": self.attention.head_dim,
            "mlp_ratio": self.attention.mlp_ratio,
            "normalize_over": self.attention.normalize_over,
        }
