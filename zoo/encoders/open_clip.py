"""The two transformers of OpenCLIP as PCME++ and ProLIP released them: one token for each head.

`clip_image` and `clip_text` are KerasHub's towers, whose every token PCME++'s COCO models read.
"""

import keras
from keras import ops

from zoo.encoders.clip import DEVIATION, MEAN
from zoo.layers.image_preprocessing import PictureScaling
from zoo.layers.transformer import GELU, LearnedTokens, TransformerBlock

CLIP_EPSILON = 1e-5


def open_clip_image(
    image_size: int = 224,
    patch_size: int = 16,
    width: int = 768,
    num_layers: int = 12,
    num_heads: int = 12,
    mlp_dim: int = 3072,
    activation: str = GELU,
    epsilon: float = CLIP_EPSILON,
    variance_blocks: int = 0,
    uncertainty_token: bool = False,
) -> keras.Model:
    """A vision transformer to the token that the mean reads, and the one that log σ² reads.

    Args:
        image_size, patch_size: in pixels.
        width, num_layers, num_heads, mlp_dim: of the transformer.
        activation, epsilon: of `zoo.layers.TransformerBlock`.
        variance_blocks: how many of the last blocks log σ² has of its own, which read what the
            block before them gave and end without a LayerNorm (PCME++); 0 for none.
        uncertainty_token: whether log σ² comes from a second token after [CLS], which all tokens
            read (ProLIP). The class token then passes the last LayerNorm twice, as released.

    Returns:
        A Functional `keras.Model` named `"backbone"` from RGB images `(batch, size, size, 3)`,
        0…255, to `{"features", "variance_features"}`, each `(batch, 1, width)`; to `{"features"}`
        with neither. CLIP's normalisation of pixels is inside.
    Reference: PCME++ (Chun, ICLR 2024); ProLIP (Chun et al., ICLR 2025); Ilharco et al.,
        OpenCLIP, 2021.
    Paper differs: the token's branch of PCME++ has no LayerNorm, and ProLIP's [CLS] has two.
    """
    images = keras.Input((image_size, image_size, 3), name="images")
    pixels = PictureScaling(
        [1 / (255 * deviation) for deviation in DEVIATION],
        [-mean / deviation for mean, deviation in zip(MEAN, DEVIATION, strict=True)],
        name="preprocessing",
    )(images)
    patches = keras.layers.Conv2D(
        width, patch_size, patch_size, use_bias=False, name="vision_patches"
    )(pixels)
    tokens = keras.layers.Reshape((-1, width), name="vision_sequence")(patches)
    tokens = LearnedTokens(1 + uncertainty_token, name="vision_tokens")(tokens)
    norm = keras.layers.LayerNormalization(epsilon=epsilon, name="vision_first_norm")
    settings = (num_heads, mlp_dim, activation, epsilon, False)
    mean, variance = _blocks(norm(tokens), "vision", num_layers, variance_blocks, settings)
    norm = keras.layers.LayerNormalization(epsilon=epsilon, name="vision_last_norm")
    if uncertainty_token:
        read = norm(mean)
        outputs = {"features": norm(read[:, :1]), "variance_features": read[:, 1:2]}
    else:
        outputs = {"features": norm(mean[:, :1])}
        if variance is not None:
            outputs["variance_features"] = variance[:, :1]
    return keras.Model(images, outputs, name="backbone")


def open_clip_text(
    vocabulary_size: int = 49408,
    max_length: int = 77,
    width: int = 512,
    num_layers: int = 12,
    num_heads: int = 8,
    mlp_dim: int = 2048,
    activation: str = GELU,
    epsilon: float = CLIP_EPSILON,
    variance_blocks: int = 0,
    uncertainty_token: bool = False,
) -> keras.Model:
    """A text transformer to the token that the mean reads, and the one that log σ² reads.

    Args:
        vocabulary_size: number of token ids; without `uncertainty_token` the last one ends every
            caption.
        max_length: length of a caption in ids.
        width, num_layers, num_heads, mlp_dim, activation, epsilon, variance_blocks: as for
            `open_clip_image`.
        uncertainty_token: whether [UNC] and [CLS] follow the ids, and all tokens read all, the
            padding too (ProLIP); else a token reads those before it, and the end token is read.

    Returns:
        A Functional `keras.Model` named `"backbone"` from ids `(batch, max_length)` int32 to
        `{"features", "variance_features", "mask"}`, each feature `(batch, 1, width)`, the mask
        True `(batch, 1)`; without `"variance_features"` where log σ² reads the mean's token.
    Paper differs: ProLIP's released text tower reads log σ² from [CLS]; [UNC] is read by the
        other tokens only.
    """
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    words = keras.layers.Embedding(vocabulary_size, width, name="text_words")(ids)
    tokens = LearnedTokens(2 * uncertainty_token, at_end=True, name="text_tokens")(words)
    settings = (num_heads, mlp_dim, activation, epsilon, not uncertainty_token)
    mean, variance = _blocks(tokens, "text", num_layers, variance_blocks, settings)
    norm = keras.layers.LayerNormalization(epsilon=epsilon, name="text_last_norm")
    if uncertainty_token:
        outputs = {"features": norm(mean[:, -1:])}
    else:
        end = ops.expand_dims(ops.argmax(ids, axis=-1, keepdims=True), -1)
        outputs = {"features": norm(ops.take_along_axis(mean, end, axis=1))}
        if variance is not None:
            outputs["variance_features"] = ops.take_along_axis(variance, end, axis=1)
    outputs["mask"] = ops.ones_like(ids[:, :1], dtype="bool")
    return keras.Model(ids, outputs, name="backbone")


def _blocks(tokens, name, num_layers, variance_blocks, settings):
    """The tokens after all blocks, and after the variance's own ones, or None."""
    variance = None
    for number in range(num_layers):
        if variance_blocks and number == num_layers - variance_blocks:
            variance = tokens
        tokens = TransformerBlock(*settings, name=f"{name}_block_{number}")(tokens)
    for number in range(variance_blocks):
        block = TransformerBlock(*settings, name=f"{name}_variance_block_{number}")
        variance = block(variance)
    return tokens, variance
