"""What the builders of PCME++, VSE∞ and InfoNCE share: their towers."""

from zoo import encoders
from zoo.models import backbones


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
    **head,
):
    """An image and a caption encoder that pool all tokens of their backbones by rank.

    Args:
        image_backbone: a name of `zoo.encoders.convolutional`, or a `keras.Model` from images to
            features, such as `zoo.encoders.clip_image("vit_b_32")`, see `pooled_image_encoder`.
        caption_backbone: a `keras.Model` from ids to features, such as `zoo.encoders.clip_text()`,
            see `pooled_caption_encoder`; None for a bidirectional GRU.
        tokenizer: a layer from strings to token ids, which says how many words there are and how
            long a caption is. The builders save it with the model.
        vocabulary_size: number of token ids, for a GRU where there is no tokenizer.
        dim: dimension of the embedding (D).
        word_dim: dimension of the word vectors of the GRU.
        max_length: length of a caption in ids, where there is no tokenizer.
        image_size: height and width of the images, for a named backbone.
        image_weights: `"imagenet"`, a local path, or None, likewise.
        drop_rate, drop_varies: share of the image's tokens that a training step leaves out, see
            `zoo.layers.PooledGaussianHead`. Words are lost by the input pipeline, which can also
            replace and delete them.
        seed: of that.
        **head: options of `zoo.layers.PooledGaussianHead`, for both towers: `covariance=None`
            for points, `pooling="mean"`, `log_variance_bias` and so on.

    Returns:
        A pair of Functional models, to embeddings.

    Raises:
        ValueError: if there is nothing to make a caption encoder of.
    """
    caption_backbone = backbones.captions(
        caption_backbone,
        tokenizer,
        vocabulary_size,
        dim,
        max_length,
        word_dim=word_dim,
        merge="ave",
    )
    image_backbone = backbones.pictures(image_backbone, image_size, image_weights)
    dropping = {"drop_rate": drop_rate, "drop_varies": drop_varies, "seed": seed}
    return (
        encoders.pooled_image_encoder(image_backbone, dim, **dropping, **head),
        encoders.pooled_caption_encoder(caption_backbone, dim, **head),
    )
