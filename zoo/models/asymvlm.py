"""AsymVLM: images are points on the sphere, captions are distributions over directions."""

from typing import Any

import keras

from zoo import losses, similarities
from zoo.encoders.image_features import positions
from zoo.layers.directional_head import DirectionalHead
from zoo.layers.masking import UnitLength, masked_mean
from zoo.models.dual_encoder import DualEncoder
from zoo.models.sets import set_backbones

_SIMILARITIES = {
    "von_mises_fisher": similarities.VonMisesFisherLikelihood,
    "power_spherical": similarities.PowerSphericalLikelihood,
}


def asymvlm(
    image_backbone: Any = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 512,
    family: str = "power_spherical",
    hidden_dim: int = 1024,
    num_hidden: int = 3,
    concentration: float = 20.0,
    scale: float = 1.0,
    fixed_images: bool = False,
    **backbones: Any,
) -> DualEncoder:
    """Asymmetric uncertainty: a caption can be vague, a picture is what it is.

    ```python
    model = zoo.models.asymvlm(
        zoo.encoders.vectors(512), caption_backbone=zoo.encoders.vectors(512), fixed_images=True
    )
    ```

    Args:
        image_backbone, tokenizer, dim, **backbones: see `zoo.models.sets.set_backbones`.
        family: `"von_mises_fisher"` or `"power_spherical"`, of the captions.
        hidden_dim, num_hidden, concentration: of `zoo.layers.DirectionalHead`.
        scale: the first T of the logits T · log likelihood.
        fixed_images: whether an image is the mean of its backbone's features as they are, `dim`
            wide, as in the paper; else a linear map of it is trained.

    Returns:
        A `DualEncoder`, not compiled. Only captions have an uncertainty, 1/κ.

    Raises:
        ValueError: if the family is unknown, there is nothing to make a caption encoder of, or
            the images are not `dim` wide where they are fixed.

    Reference: "Exploiting the Asymmetric Uncertainty Structure of Pre-trained VLMs on the Unit
        Hypersphere" (AsymVLM), NeurIPS 2025.

    Released code differs: its bins of image-to-text recall pair sorted predictions with positions
        of the unsorted ones, so they say nothing.
    """
    if family not in _SIMILARITIES:
        raise ValueError(f"`family` must be one of {tuple(_SIMILARITIES)}; received {family!r}")
    images, captions = set_backbones(image_backbone, tokenizer=tokenizer, dim=dim, **backbones)
    return DualEncoder(
        _image_encoder(images, dim, fixed_images),
        _caption_encoder(captions, DirectionalHead(dim, hidden_dim, num_hidden, concentration)),
        similarity=_SIMILARITIES[family](scale),
        loss=losses.InfoNCE(),
        tokenizer=tokenizer,
        uncertainty_measure="inverse_concentration",
        name="asymvlm",
    )


def _image_encoder(backbone, dim, fixed):
    images = keras.Input(backbone.input_shape[1:], name="images")
    features, mask = positions(backbone(images))
    pooled = masked_mean(features, mask)
    if fixed and pooled.shape[-1] != dim:
        raise ValueError(
            f"`fixed_images` needs images of {dim} channels, as `dim` says; received "
            f"{pooled.shape[-1]}"
        )
    point = pooled if fixed else keras.layers.Dense(dim, name="embedding")(pooled)
    return keras.Model(
        images, {"mean": UnitLength(name="unit_length")(point)}, name="image_encoder"
    )


def _caption_encoder(backbone, head):
    captions = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(captions)
    for name in ("sentence", "pooled"):
        if name in output:
            return keras.Model(captions, head(output[name]), name="caption_encoder")
    pooled = masked_mean(output["features"], output["mask"])
    return keras.Model(captions, head(pooled), name="caption_encoder")
