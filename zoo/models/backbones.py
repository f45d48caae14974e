"""The two networks that the towers of a model start from."""

import inspect

from zoo import encoders
from zoo.encoders.words import caption_features


def backbones(
    image_backbone,
    tokenizer,
    dim,
    caption_backbone=None,
    vocabulary_size=None,
    word_dim=300,
    word_vectors=None,
    max_length=32,
    image_size=224,
    image_weights=None,
    gru=None,
):
    """The networks of a builder, of images and of captions: a pair of `keras.Model`s to features.

    Args:
        image_backbone: what `zoo.encoders.image_features` takes: a name, a network such as
            `zoo.encoders.clip_image("vit_b_32")`, or the shape of precomputed features.
        tokenizer: a layer from strings to token ids, such as `zoo.data.captions.word_tokenizer`,
            saved with the model: it says how many words there are and how long a caption is.
        dim: of the GRU.
        caption_backbone: a `keras.Model` from ids to features, such as `zoo.encoders.clip_text()`,
            `zoo.encoders.bert(…)`, or `zoo.encoders.vectors(dim)` for stored vectors; None for a
            GRU over words.
        vocabulary_size, max_length: number of token ids, and length of a caption in ids, for a GRU
            where there is no tokenizer; else a ValueError.
        word_dim: dimension of the GRU's word vectors.
        word_vectors: initial word vectors `(vocabulary_size, word_dim)`, such as GloVe's, or None.
        image_size, image_weights: of `zoo.encoders.convolutional`, for a named network.
        gru: further options of `zoo.encoders.gru`, a builder's own.
    """
    options = {"word_dim": word_dim, "word_vectors": word_vectors, **(gru or {})}
    return encoders.image_features(image_backbone, image_size, image_weights), caption_features(
        caption_backbone, tokenizer, vocabulary_size, dim, max_length, **options
    )


def parted(options):
    """`(those that `backbones` takes, the others)` of a builder's options."""
    names = options.keys() & inspect.signature(backbones).parameters.keys()
    return {n: options[n] for n in names}, {n: v for n, v in options.items() if n not in names}
