"""PCME++ as published on Hugging Face: CLIP's towers with two blocks of their own for log σ²."""

from zoo import encoders, models
from zoo.checkpoints.family import Family, Source, clip_tokenizer
from zoo.checkpoints.open_clip_settings import image_settings, text_settings
from zoo.encoders import weight_layouts
from zoo.encoders.weight_layouts import Entry
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder

_TEXT = "uncertainty_text_projection"
# Of the contrastive objective that these weights were trained with too; their answers need none.
_UNUSED = ("logit_scale",)


def build(source: Source) -> DualEncoder:
    """PCME++ for zero-shot use, of the arrays of `HfPCMEPPModel`.

    Its logit −negative_scale · CSD + shift is the model's similarity, its mean Σσ² the
    uncertainty up to a factor. What the code calls `std` is log σ².

    Published under the MIT licence: `SanghyukChun/PCMEPP-ViT-B-16-CC3M-12M-RedCaps` and
    `…-256M`, of 600 MB and more each. Compared with the official code's answers at full size.

    Raises:
        InputError: see `zoo.from_checkpoint`.
    """
    arrays = source.arrays
    blocks = arrays.count("visual.uncertainty_transformer.resblocks.{}.")
    image = encoders.open_clip_image(**image_settings(source, 1, {}), variance_blocks=blocks)
    settings = text_settings(source, "", 0, {"embed_cls": (False,)})
    blocks = arrays.count("uncertainty_transformer.resblocks.{}.")
    text = encoders.open_clip_text(**settings, variance_blocks=blocks)
    scale = arrays.scalar("negative_scale")
    if not scale > 0:
        raise InputError(
            f"{arrays.path}: 'negative_scale' must be positive, or the farthest match best; "
            f"received {scale:.3g}"
        )
    model = models.pcmepp(
        image,
        clip_tokenizer(source, settings["max_length"]),
        arrays.shape("visual.proj")[1],
        scale=scale,
        shift=arrays.scalar("shift"),
        caption_backbone=text,
        pooling="mean",  # of the one token
        drop_rate=0.0,
    )
    entries = [
        *weight_layouts.open_clip_image(image, False),
        *weight_layouts.open_clip_text(text, False),
        *_head(model.image_encoder, "visual.proj", "visual.uncertainty_proj"),
        *_head(model.caption_encoder, "text_projection", _TEXT),
    ]
    read = ("negative_scale", "shift")  # above
    weight_layouts.fill(arrays, entries, "PCME++", (*weight_layouts.COUNTERS, *read, *_UNUSED))
    return model


def _head(encoder, mean, variance):
    """Of two matrices without biases."""
    head = encoder.get_layer("head")
    head.mean_map.bias.assign(0.0 * head.mean_map.bias)
    head.covariance.bias.assign(0.0 * head.covariance.bias)
    yield Entry(head.mean_map.kernel, (mean,))
    yield Entry(head.variance_map.kernel, (variance,))


PCMEPP = Family("pcmepp", (_TEXT, "visual.uncertainty_proj"), build)
