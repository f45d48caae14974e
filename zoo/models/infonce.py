"""InfoNCE: CLIP's loss on pooled towers."""

from typing import Any

import keras

from zoo import losses, similarities
from zoo.models.dual_encoder import DualEncoder
from zoo.models.pooled import pooled_encoders


def infonce(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    scale: float = 1 / 0.07,
    **towers: Any,
) -> DualEncoder:
    """Points trained by the symmetric softmax over the batch, with a learned temperature.

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`.
        scale: initial factor of the cosine, one over the temperature.

    Returns:
        A `DualEncoder` of points, not compiled.

    Raises:
        ValueError: if there is nothing to make a caption encoder of.

    Relations: PCME++'s baseline "InfoNCE": its towers, CLIP's loss.

    Reference: Radford et al., "Learning Transferable Visual Models From Natural Language
        Supervision", ICML 2021, section 2.3.
    """
    image_encoder, caption_encoder = pooled_encoders(
        image_backbone, tokenizer=tokenizer, dim=dim, covariance=None, **towers
    )
    return DualEncoder(
        image_encoder,
        caption_encoder,
        similarity=similarities.Cosine(scale, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=tokenizer,
        name="infonce",
    )
