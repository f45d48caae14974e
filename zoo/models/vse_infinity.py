"""VSE∞: generalized pooling with a triplet loss."""

from typing import Any

import keras

from zoo import losses, similarities
from zoo.models.dual_encoder import DualEncoder
from zoo.models.pooled import pooled_encoders


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
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`.
        margin, mining: see `zoo.losses.TripletRanking`.

    Returns:
        A `DualEncoder` of points, not compiled. Its loss sums over the batch, as VSE++'s does.

    Raises:
        ValueError: if there is nothing to make a caption encoder of.

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
