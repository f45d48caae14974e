"""Systems that pool all tokens by rank: VSE∞ and InfoNCE, and the towers that PCME++ shares."""

from typing import Any

import keras

from zoo import encoders, losses, similarities
from zoo.models.backbones import backbones
from zoo.models.dual_encoder import DualEncoder


def pooled_encoders(
    image_backbone="resnet50",
    caption_backbone=None,
    tokenizer=None,
    vocabulary_size=None,
    dim=1024,
    word_dim=300,
    max_length=32,
    image_size=224,
    image_weights=None,
    drop_rate=0.2,
    drop_varies=True,
    seed=0,
    caption_pooling=None,
    **head,
):
    """An image and a caption encoder that pool all tokens of their backbones by rank; `**head` and
    the dropping, of the image's tokens alone, are options of `zoo.layers.PooledGaussianHead`."""
    # Words are lost by the input pipeline, which can also replace and delete them.
    images, captions = backbones(
        image_backbone,
        tokenizer,
        dim,
        caption_backbone,
        vocabulary_size,
        word_dim,
        max_length=max_length,
        image_size=image_size,
        image_weights=image_weights,
        gru={"merge": "ave"},
    )
    dropping = {"drop_rate": drop_rate, "drop_varies": drop_varies, "seed": seed}
    images = encoders.pooled_image_encoder(images, dim, **dropping, **head)
    if caption_pooling is not None:
        head["pooling"] = caption_pooling
    return images, encoders.pooled_caption_encoder(captions, dim, **head)


def infonce(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    temperature: float = 0.07,
    **towers: Any,
) -> DualEncoder:
    """Points trained by the symmetric softmax over the batch, with a learned temperature.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.infonce("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`.
        temperature: initial τ of the softmax of cosine / τ. The default is CLIP's; PCME++'s
            baseline "InfoNCE" (section 3.1) starts at 1.0.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or the temperature is not
            at least 0.01, beyond which CLIP clips it.

    Released code differs: PCME++'s learns the factor 1 / τ itself, this its logarithm, as CLIP.

    Reference: Radford et al., "Learning Transferable Visual Models From Natural Language
        Supervision", ICML 2021, section 2.3.
    """
    if not temperature >= 0.01:
        raise ValueError(f"`temperature` must be at least 0.01; received {temperature}")
    image_encoder, caption_encoder = pooled_encoders(
        image_backbone, tokenizer=tokenizer, dim=dim, covariance=None, **towers
    )
    return DualEncoder(
        image_encoder,
        caption_encoder,
        similarity=similarities.Cosine(1.0 / temperature, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=tokenizer,
        name="infonce",
    )


def vse_infinity(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    margin: float = 0.2,
    mining: str = "hardest",
    **towers: Any,
) -> DualEncoder:
    """VSE∞: all tokens pooled by learned weights of their ranks, cosine, hardest negatives.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.vse_infinity("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`; without
            anything to make a caption encoder of, a ValueError.
        margin, mining: see `zoo.losses.TripletRanking`, which sums over the batch, as VSE++'s does.

    Reference: Chen et al., "Learning the Best Pooling Strategy for Visual Semantic Embedding",
        CVPR 2021.
    """
    image_encoder, caption_encoder = pooled_encoders(
        image_backbone, tokenizer=tokenizer, dim=dim, covariance=None, **towers
    )
    return DualEncoder(
        image_encoder,
        caption_encoder,
        similarity=similarities.Cosine(),
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="vse_infinity",
    )
