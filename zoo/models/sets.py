"""What the builders of DivE and PVSE share: their backbones, and how all comes together."""

import keras

from zoo import encoders, similarities
from zoo.embeddings import SET
from zoo.models import backbones
from zoo.models.dual_encoder import DualEncoder

# Of sets and of nothing else.
SIMILARITIES = similarities.names(lambda cls: cls.embeddings == (SET,))


def set_backbones(
    image_backbone="resnet152",
    caption_backbone=None,
    tokenizer=None,
    vocabulary_size=None,
    dim=1024,
    word_dim=300,
    word_vectors=None,
    merge="concat",
    max_length=32,
    image_size=224,
    image_weights=None,
    dropout=0.0,
    drop_rate=0.0,
    seed=0,
):
    """What the towers of a set model start from.

    Args:
        image_backbone: a name of `zoo.encoders.convolutional`; the shape `(num_regions,
            region_dim)` of precomputed regions, the number perhaps None, which
            `zoo.encoders.regions` reads; or a `keras.Model` to features, see
            `zoo.encoders.set_image_encoder`.
        caption_backbone: a `keras.Model` from ids to features, such as `zoo.encoders.bert(…)`, see
            `zoo.encoders.set_caption_encoder`; None for a bidirectional GRU.
        tokenizer: a layer from strings to token ids, which says how many words there are and how
            long a caption is. The builders save it with the model.
        vocabulary_size: number of token ids, for a GRU where there is no tokenizer.
        dim: dimension of the elements (D).
        word_dim, word_vectors, merge: of the GRU, see `zoo.encoders.gru`.
        max_length: length of a caption in ids, for a GRU where there is no tokenizer.
        image_size, image_weights: of a named network, see `zoo.encoders.convolutional`.
        dropout, drop_rate, seed: of `zoo.encoders.regions`.

    Returns:
        A pair of `keras.Model`s, of images and of captions.

    Raises:
        ValueError: if the shape is not one of regions, or there is nothing to make a caption
            encoder of.
    """
    if isinstance(image_backbone, (str, keras.Model)):
        images = encoders.image_features(image_backbone, image_size, image_weights)
    elif len(image_backbone) == 2:
        num_regions, region_dim = image_backbone
        images = encoders.regions(region_dim, dim, num_regions, dropout, drop_rate, seed)
    else:
        raise ValueError(
            "`image_backbone` must be a name, a keras.Model, or a shape (num_regions, "
            f"region_dim); received {image_backbone!r}"
        )
    options = {"word_dim": word_dim, "merge": merge, "word_vectors": word_vectors}
    return images, backbones.captions(
        caption_backbone, tokenizer, vocabulary_size, dim, max_length, **options
    )


def set_similarity(name, alpha=16.0):
    """The similarity of two sets by its name in DivE's ablation.

    Raises:
        ValueError: if it is none of `SIMILARITIES`.
    """
    if name not in SIMILARITIES:
        raise ValueError(f"`similarity` must be one of {SIMILARITIES}; received {name!r}")
    return similarities.SmoothChamfer(alpha) if name == "smooth_chamfer" else similarities.get(name)


def set_model(backbones, dim, set_layer, terms, name, project_map=False, **parts):
    """A `DualEncoder` of sets.

    Args:
        backbones: of `set_backbones`.
        dim: dimension of the elements.
        set_layer: function from the name of the layer that makes the sets to the layer.
        terms: the auxiliary ones; those without weight are left out.
        name: of the model.
        project_map: of `zoo.encoders.set_image_encoder`.
        **parts: of `DualEncoder`.
    """
    images, captions = backbones
    return DualEncoder(
        encoders.set_image_encoder(images, dim, set_layer("image_set"), project_map),
        encoders.set_caption_encoder(captions, dim, set_layer("caption_set")),
        auxiliaries=[term for term in terms if term.weight],
        uncertainty_measure="circular_variance",
        name=name,
        **parts,
    )
