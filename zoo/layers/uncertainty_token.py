"""ProLIP's [UNC]: one more token of a transformer, from which the variance is read."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor


@keras.saving.register_keras_serializable(package="halo")
class UncertaintyToken(keras.layers.Layer):
    """A tower of CLIP with a token that reads all others and that none of them reads.

    The tower computes what it computes without the token, so pretrained weights keep what they
    say, and the token goes through the same blocks.

    ```python
    tower = zoo.encoders.clip_image("tiny", image_size=32, uncertainty_token=True)
    tower(np.ones((1, 32, 32, 3)))["variance_features"]  # (1, 1, 64)
    ```

    Args:
        encoder: KerasHub's `CLIPVisionEncoder` or `CLIPTextEncoder`, which becomes a part of it.

    Call arguments:
        inputs: pictures `(batch, size, size, 3)`, or token ids `(batch, length)`.
        mask: bool `(batch, length)`, the tokens that are read; all of them without.

    Output: `(tokens, token)`, `(batch, length, width)` and `(batch, 1, width)`.

    Reference: ProLIP (Chun et al., ICLR 2025), section on the uncertainty token.

    Paper differs: there all tokens read [UNC], and the model is trained from scratch, captions
        without a causal mask. CLIP's have one, so a last token that is not read is what it has
        learnt to expect.
    """

    def __init__(self, encoder: keras.Model, **kwargs: Any):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.embedding, self.layer_norm = encoder.embedding, encoder.layer_norm
        self.encoder_layers = encoder.encoder_layers
        self.pre_layer_norm = getattr(encoder, "pre_layer_norm", None)

    def build(self, inputs_shape, mask_shape=None):
        width = self.encoder.hidden_dim
        self.token = self.add_weight(
            shape=(width,),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
            name="token",
        )

    def call(
        self, inputs: Tensor, mask: Tensor | None = None, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        tokens = self.embedding(inputs)
        own = ops.broadcast_to(
            ops.cast(self.token, tokens.dtype), (ops.shape(tokens)[0], 1, self.token.shape[0])
        )
        if self.pre_layer_norm is not None:
            tokens, own = self.pre_layer_norm(tokens), self.pre_layer_norm(own)
        if mask is not None:  # the token reads itself too
            mask = ops.pad(ops.expand_dims(mask, 1), ((0, 0), (0, 0), (0, 1)), constant_values=True)
        for block in self.encoder_layers:
            own = _read(block, own, tokens, mask, training)
            tokens = block(tokens, training=training)
        return self.layer_norm(tokens), self.layer_norm(own)

    def compute_mask(self, inputs, previous_mask):
        return None  # the backbone hands on the mask itself

    def get_config(self) -> dict[str, Any]:
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": encoder}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "UncertaintyToken":
        encoder = keras.saving.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)


def _read(block, own, tokens, mask, training):
    """What a block of CLIP makes of one more token after all others."""
    query, others = block.layer_norm_1(own), block.layer_norm_1(tokens)
    keys = ops.concatenate([others, query], axis=1)
    own = own + block.attention(query, keys, keys, attention_mask=mask, training=training)
    hidden = block.activation(block.dense_1(block.layer_norm_2(own)))
    return own + block.dense_2(hidden)
