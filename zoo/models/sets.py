"""What the builders of DivE and PVSE share: their backbones, and how all comes together."""

import keras

from zoo import encoders, similarities
from zoo.models.dual_encoder import DualEncoder

SIMILARITIES = ("smooth_chamfer", "chamfer", "maximum_pair", "match_probability")


def image_backbone(given, dim, image_size, image_weights, **regions):
    """The backbone of a set model's images.

    Args:
        given: a name of `zoo.encoders.convolutional`; a `keras.Model`, see `set_image_encoder`; or
            the shape `(num_regions, region_dim)` of precomputed regions, the number perhaps None.
        dim: dimension of the embedding.
        image_size, image_weights: of a named network.
        **regions: options of `zoo.encoders.regions`.
    """
    if isinstance(given, (str, keras.Model)):
        return encoders.image_features(given, image_size, image_weights)
    shape = tuple(given)
    if len(shape) != 2:
        raise ValueError(
            "`image_backbone` must be a name, a keras.Model, or a shape (num_regions, "
            f"region_dim); received {given!r}"
        )
    return encoders.regions(shape[1], dim, num_regions=shape[0], **regions)


def caption_backbone(given, dim, tokenizer, vocabulary_size, max_length, **gru):
    """The backbone of a set model's captions: the one that was given, or a bidirectional GRU.

    Raises:
        ValueError: if there is nothing to make a GRU of.
    """
    if given is not None:
        return given
    if tokenizer is None and vocabulary_size is None:
        raise ValueError(
            "one of `caption_backbone`, `tokenizer` and `vocabulary_size` must be given; "
            "received none"
        )
    if tokenizer is not None:
        vocabulary_size, max_length = tokenizer.vocabulary_size(), tokenizer.max_words
    return encoders.gru(vocabulary_size, dim, max_length=max_length, **gru)


def set_similarity(name, alpha=16.0):
    """The similarity of two sets by its name in DivE's ablation.

    Raises:
        ValueError: if it is none of `SIMILARITIES`.
    """
    if name not in SIMILARITIES:
        raise ValueError(f"`similarity` must be one of {SIMILARITIES}; received {name!r}")
    if name == "smooth_chamfer":
        return similarities.SmoothChamfer(alpha)
    if name == "match_probability":
        return similarities.SetMatchProbability()
    return similarities.Chamfer() if name == "chamfer" else similarities.MaximumPair()


def set_model(backbones, dim, set_layer, name, **parts):
    """A `DualEncoder` of sets.

    Args:
        backbones: of images and of captions.
        dim: dimension of the elements.
        set_layer: function from the name of the layer that makes the sets to the layer.
        name: of the model.
        **parts: of `DualEncoder`.
    """
    images, captions = backbones
    return DualEncoder(
        encoders.set_image_encoder(images, dim, set_layer("image_set")),
        encoders.set_caption_encoder(captions, dim, set_layer("caption_set")),
        uncertainty_measure="circular_variance",
        name=name,
        **parts,
    )
