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
            baseline starts at 1.0.

    Returns:
        A `DualEncoder` of points, not compiled.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or the temperature is not
            at least 0.01, beyond which CLIP clips it.

    Relations: with `temperature=1.0` PCME++'s baseline "InfoNCE" (section 3.1): its towers, CLIP's
        loss.

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
