"""PCME++ and ProLIP as published on Hugging Face: towers in OpenCLIP's layout, and its settings."""

import math

import numpy as np

from zoo import encoders, losses, models, similarities
from zoo.checkpoints.family import Family, Source, clip_tokenizer, prolip_tokenizer
from zoo.checkpoints.open_clip_settings import image_settings, text_settings
from zoo.encoders import weight_layouts
from zoo.encoders.weight_layouts import Entry
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder

_TEXT = "uncertainty_text_projection"
# Of the contrastive objective that these weights were trained with too; their answers need none.
_UNUSED = ("logit_scale",)
_VISION = {"embed_unc": (True,)}
_PROLIP_TEXT = {
    "embed_cls": (True,),
    "embed_unc": (True,),
    "no_causal_mask": (True,),
    "pool_type": ("last",),
}
_EPSILON = 1e-6  # of the published text towers
_SCALES = ("logit_scale", "logit_bias")


def build_pcmepp(source: Source) -> DualEncoder:
    """PCME++ for zero-shot use, of the arrays of `HfPCMEPPModel`. Raises as
    `zoo.from_checkpoint`."""
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


def build_prolip(source: Source) -> DualEncoder:
    """ProLIP, of the arrays of `ProLIPHF`: B/16, L/16, SO400M/14, H/14 and LongProLIP. Raises as
    `zoo.from_checkpoint`."""
    arrays = source.arrays
    image = encoders.open_clip_image(**image_settings(source, 2, _VISION), uncertainty_token=True)
    settings = text_settings(source, "text.", 2, _PROLIP_TEXT, _EPSILON)
    text = encoders.open_clip_text(**settings, uncertainty_token=True)
    dim = arrays.shape("visual.proj")[1]
    head = {"pooling": "mean", "log_variance_bias": 0.0}  # the mean of one token
    scale, bias = math.exp(arrays.scalar("logit_scale")), arrays.scalar("logit_bias")
    model = DualEncoder(
        encoders.pooled_image_encoder(image, dim, **head),
        encoders.pooled_caption_encoder(text, dim, **head),
        similarity=similarities.ClosedFormSampledDistance(scale / 2, scale + bias),
        loss=losses.MatchingCrossentropy(reduction="sum"),
        auxiliaries=[losses.Inclusion()],
        tokenizer=prolip_tokenizer(source, settings["max_length"]),
        uncertainty_measure="total_variance",
        name="prolip",
    )
    entries = [
        *weight_layouts.open_clip_image(image, True),
        *weight_layouts.open_clip_text(text, True, "text."),
        *_image_head(model.image_encoder.get_layer("head")),
        *_text_head(model.caption_encoder.get_layer("head")),
    ]
    weight_layouts.fill(arrays, entries, "ProLIP", (*weight_layouts.COUNTERS, *_SCALES))
    return model


def _head(encoder, mean, variance):
    """Of two matrices without biases."""
    head = encoder.get_layer("head")
    head.mean_map.bias.assign(0.0 * head.mean_map.bias)
    head.covariance.bias.assign(0.0 * head.covariance.bias)
    yield Entry(head.mean_map.kernel, (mean,))
    yield Entry(head.variance_map.kernel, (variance,))


def _image_head(head):
    head.mean_map.bias.assign(0.0 * head.mean_map.bias)
    yield Entry(head.mean_map.kernel, ("visual.proj",))
    yield Entry(head.variance_map.kernel, ("visual.uncertainty_proj.weight",), np.transpose)
    yield Entry(head.covariance.bias, ("visual.uncertainty_proj.bias",))


def _text_head(head):
    """The released code maps the unnormalised mean to log σ²: two linear maps in a row are one."""
    mean, variance = "text.text_projection", "text.text_uncertainty_projection"
    yield from weight_layouts.linear(head.mean_map, mean)
    both = (f"{mean}.weight", f"{variance}.weight")
    yield Entry(head.variance_map.kernel, both, lambda w, u: _exact(w.T, u.T))
    both = (f"{mean}.bias", f"{variance}.weight", f"{variance}.bias")
    yield Entry(head.covariance.bias, both, lambda b, u, c: _exact(b, u.T) + c)


def _exact(first, second):
    """A product in double precision, as float32."""
    return (first.astype(np.float64) @ second.astype(np.float64)).astype(np.float32)


PCMEPP = Family("pcmepp", (_TEXT, "visual.uncertainty_proj"), build_pcmepp)


PROLIP = Family("prolip", ("text.unc_emb", "visual.unc_embedding"), build_prolip)
