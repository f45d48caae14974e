"""DivE's slots: attention that shares positions among them, and the sets that they become."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.masking import masked_softmax
from zoo.layers.transformer import map_encoding, sequence_encoding

NORMALIZE_OVER = ("slots", "positions")


@keras.saving.register_keras_serializable(package="halo")
class SlotAttention(Layer):
    """Updates slots by attention to features, normalised over the slots, and an MLP.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    slots = np.ones((2, 3, 8), "float32")
    zoo.layers.SlotAttention()(slots, features)  # (2, 3, 8)
    ```

    A round: A = softmax over slots of k·q / √head_dim, Â = A normalised over positions,
    slots ← Âᵀ·v·W_o + slots, slots ← MLP(LayerNorm(slots)) + slots, where q is linear in
    LayerNorm(slots) and k, v in LayerNorm(features). Keys and values are made once, since all
    rounds share their weights. There is no GRU, unlike in Locatello et al.

    Args:
        num_iterations: rounds (T).
        num_heads: attention heads, each of which normalises on its own.
        head_dim: channels a head; None for the slots' `dim / num_heads`.
        mlp_ratio: width of the MLP's hidden layer over `dim`.
        normalize_over: `"slots"`, which compete for every position, as above; or `"positions"`: A
            is the softmax over positions, as in a transformer, and slots may look at the same.
        dropout, seed: share of the numbers that a training step zeroes, in the attention's output
            and in the MLP's hidden layer.
    Call arguments: slots `(batch, num_slots, dim)`; features `(batch, positions, channels)`;
        positions, encodings to add to the features of the keys, or None; mask, bool `(batch,
        positions)`, True where one counts; return_attention, whether to return the last Â too.
    Output: slots `(batch, num_slots, dim)`; with `return_attention`, a pair of them and Â, float32
        `(batch, num_heads, num_slots, positions)`, rows of which sum to one.
    Reference: DivE (Kim et al., CVPR 2023), section 3.2 and equations 2 to 4, where D_h is
        `num_heads · head_dim`; its row "Transformer" (table 3), of which the paper says only that
        the attention is over keys, is `normalize_over="positions"`; Locatello et al.,
        "Object-Centric Learning with Slot Attention", NeurIPS 2020.
    Released code differs: it gives padded positions a weight of 1/num_slots before they are
        normalised.
    """

    def __init__(
        self,
        num_iterations: int = 4,
        num_heads: int = 1,
        head_dim: int | None = None,
        mlp_ratio: int = 4,
        normalize_over: str = "slots",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, size in (("num_iterations", num_iterations), ("num_heads", num_heads)):
            if size < 1:
                raise ValueError(f"`{name}` must be a positive integer; received {size}")
        self.num_iterations = num_iterations
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.mlp_ratio = mlp_ratio
        if normalize_over not in NORMALIZE_OVER:
            raise ValueError(
                f"`normalize_over` must be one of {NORMALIZE_OVER}; received {normalize_over!r}"
            )
        self.normalize_over = normalize_over
        self.dropout, self.seed = dropout, seed
        self.drop = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, slots_shape, features_shape):
        dim, channels = slots_shape[-1], features_shape[-1]
        if self.head_dim is None and dim % self.num_heads:
            raise ValueError(f"`num_heads` must divide {dim}; received {self.num_heads}")
        self.width = (self.head_dim or dim // self.num_heads) * self.num_heads
        self.scale = (self.width // self.num_heads) ** -0.5

        def add(layer, name, shape, *args, **kwargs):
            layer = layer(*args, dtype=self.dtype_policy, name=name, **kwargs)
            layer.build(shape)
            setattr(self, name, layer)

        dense, norm = keras.layers.Dense, keras.layers.LayerNormalization
        inner = int(self.mlp_ratio * dim)
        add(norm, "normalize_features", features_shape, epsilon=1e-5)
        add(norm, "normalize_slots", slots_shape, epsilon=1e-5)
        add(norm, "normalize_mlp", slots_shape, epsilon=1e-5)
        add(dense, "query", (None, dim), self.width, use_bias=False)
        add(dense, "key", (None, channels), self.width, use_bias=False)
        add(dense, "value", (None, channels), self.width, use_bias=False)
        add(dense, "output_projection", (None, self.width), dim)
        add(dense, "mlp_hidden", (None, dim), inner, activation=_exact_gelu)
        add(dense, "mlp_output", (None, inner), dim)

    def call(
        self,
        slots: Tensor,
        features: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        return_attention: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        features = self.normalize_features(features)
        located = features if positions is None else features + positions
        keys = self._split(self.key(located))
        values = self._split(self.value(features))
        if mask is not None:
            mask = ops.expand_dims(ops.expand_dims(ops.cast(mask, "bool"), 1), 1)
        for _ in range(self.num_iterations):
            queries = self._split(self.query(self.normalize_slots(slots)))
            attention = self._attention(queries, keys, mask)
            update = ops.matmul(ops.cast(attention, values.dtype), values)
            slots = slots + self.drop(self.output_projection(self._join(update)))
            hidden = self.drop(self.mlp_hidden(self.normalize_mlp(slots)))
            slots = slots + self.mlp_output(hidden)
        return (slots, attention) if return_attention else slots

    def _attention(self, queries, keys, mask):
        """Weights (batch, heads, slots, positions) of queries and keys, which sum to one over
        positions."""
        scores = ops.matmul(queries * self.scale, ops.swapaxes(keys, 2, 3))
        if self.normalize_over == "positions":
            return masked_softmax(scores, mask, axis=3)
        shares = masked_softmax(scores, axis=2)
        if mask is not None:
            shares = ops.where(mask, shares, 0.0)
        return shares / (ops.sum(shares, axis=3, keepdims=True) + 1e-7)

    def _split(self, values):
        """`(batch, n, width)` to `(batch, num_heads, n, head_dim)`."""
        batch, length = ops.shape(values)[:2]
        head_dim = self.width // self.num_heads
        values = ops.reshape(values, (batch, length, self.num_heads, head_dim))
        return ops.swapaxes(values, 1, 2)

    def _join(self, values):
        """Heads side by side: (batch, heads, slots, dim) to (batch, slots, heads · dim)."""
        batch, length = ops.shape(values)[0], ops.shape(values)[2]
        return ops.reshape(ops.swapaxes(values, 1, 2), (batch, length, self.width))


@keras.saving.register_keras_serializable(package="halo")
class SetPrediction(Layer):
    """A set of embeddings: LayerNorm(slots after attention) + LayerNorm(global).

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    sets = zoo.layers.SetPrediction(num_slots=3)(features, features.mean(axis=1))
    sets["elements"]  # (2, 3, 8)
    ```

    Args:
        num_slots: elements of the set (K).
        encode_positions: whether the keys know where they are: in a feature map by row and
            column, in a sequence by the place relative to its length.
        num_iterations, num_heads, head_dim, mlp_ratio, normalize_over, dropout, seed: of
            `SlotAttention`.
    Call arguments: features, a map `(batch, height, width, channels)` or a sequence `(batch,
        positions, channels)`; pooled, the global feature `(batch, dim)`; mask, of sequences, and
        return_attention as of `SlotAttention`.
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
        dropout: float = 0.0,
        seed: int | None = None,
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
            dropout,
            seed,
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
        """Position encodings of a map or of a sequence; None where they are not used."""
        if not self.encode_positions:
            return None
        shape = ops.shape(features)
        if len(features.shape) == 4:
            return map_encoding(shape[1], shape[2], features.shape[-1])
        return sequence_encoding(shape[1], features.shape[-1], mask)


@keras.saving.register_keras_serializable(package="halo")
def _exact_gelu(features):
    return ops.gelu(features, approximate=False)
