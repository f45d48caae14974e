"""VSE0 and VSE++: a linear map of an image, a GRU's sentence, and a triplet loss."""

import os
from typing import Any

import keras

from zoo import encoders, losses, similarities
from zoo.embeddings import Tensor
from zoo.encoders.image_features import ImageBackbone
from zoo.models import backbones
from zoo.models.dual_encoder import DualEncoder


def vsepp(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    vocabulary_size: int | None = None,
    dim: int = 1024,
    word_dim: int = 300,
    word_vectors: Tensor | None = None,
    max_length: int = 32,
    image_size: int = 224,
    image_weights: str | os.PathLike | None = None,
    margin: float = 0.2,
    mining: str = "hardest",
    caption_backbone: keras.Model | None = None,
    unit_features: bool | None = None,
) -> DualEncoder:
    """VSE++: mean-pooled image features, a GRU, cosine, hardest negatives.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.vsepp("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Train it with the sum of hinges first (`compile(loss=TripletRanking(margin))` for an epoch or
    so): from random weights, hardest negatives can draw everything into one point, which
    `zoo.training.CollapseWarning` notices.

    Args:
        image_backbone: a name of `zoo.encoders.convolutional`, a `keras.Model` from images to
            local features, or the shape of precomputed features, `(num_regions, dim)` or
            `(dim,)`, see `zoo.encoders.image_features`.
        tokenizer: a layer from strings to token ids, such as `zoo.data.captions.word_tokenizer`.
            It is saved with the model, and says how many words there are and how long a caption.
        vocabulary_size: number of token ids, where there is no tokenizer.
        dim: dimension of the embedding (D).
        word_dim: dimension of the word vectors, which are trained from scratch.
        word_vectors: initial word vectors `(vocabulary, word_dim)`, or None.
        max_length: length of a caption in ids, where there is no tokenizer.
        image_size, image_weights: for a named backbone, see `zoo.encoders.convolutional`.
        margin, mining: see `zoo.losses.TripletRanking`.
        caption_backbone: a `keras.Model` to features in place of the GRU, such as
            `zoo.encoders.vectors(dim)` for stored vectors; None for the GRU.
        unit_features: whether a network's features have length one before the linear map too.
            None for yes, except for precomputed features.

    Returns:
        A `DualEncoder` of points, not compiled. Its loss sums over the batch.

    Raises:
        ValueError: if there is nothing to make a caption encoder of.

    Relations: `vse0` is it with `mining="sum"`.

    Reference: Faghri et al., "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives",
        BMVC 2018. The length of the features is that of the released code (`EncoderImageFull`;
        `EncoderImagePrecomp` has none), which the paper does not print.
    """
    if unit_features is None:
        unit_features = not isinstance(image_backbone, (tuple, list))
    backbone = encoders.image_features(image_backbone, image_size, image_weights)
    words = backbones.captions(
        caption_backbone,
        tokenizer,
        vocabulary_size,
        dim,
        max_length,
        word_dim=word_dim,
        word_vectors=word_vectors,
        bidirectional=False,
    )
    return DualEncoder(
        encoders.mean_image_encoder(backbone, dim, unit_features),
        encoders.sentence_caption_encoder(words, dim),
        similarity=similarities.Cosine(),
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="vse0" if mining == "sum" else "vsepp",
    )


def vse0(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    **options: Any,
) -> DualEncoder:
    """VSE0: VSE++ with all negatives, a hinge each.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.vse0("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Args:
        image_backbone, tokenizer, **options: of `vsepp`.

    Returns:
        A `DualEncoder` of points, not compiled. Its loss sums over the batch.

    Raises:
        ValueError: as `vsepp`.

    Reference: Kiros et al., "Unifying Visual-Semantic Embeddings with Multimodal Neural Language
        Models", 2014, as Faghri et al. (BMVC 2018) call it.
    """
    return vsepp(image_backbone, tokenizer, mining="sum", **options)
