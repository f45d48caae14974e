"""PCME++ and ProLIP as published on Hugging Face: towers in OpenCLIP's layout, and its settings."""

import math
from typing import Any

import numpy as np

from halo_search.errors import InputError
from zoo import encoders, losses, models, similarities
from zoo.checkpoints.family import Family, Source, check_settings, clip_tokenizer, prolip_tokenizer
from zoo.encoders import gaussian_towers, weight_layouts
from zoo.encoders.open_clip import CLIP_EPSILON
from zoo.encoders.weight_arrays import WeightArrays
from zoo.encoders.weight_layouts import Entry
from zoo.layers.transformer import GELU, QUICK_GELU
from zoo.models.dual_encoder import DualEncoder

_TEXT_VARIANCE = "uncertainty_text_projection"
# Of the contrastive objective that these weights were trained with too; their answers need none.
_UNUSED = ("logit_scale",)
_PROLIP_VISION = {"embed_unc": (True,)}
_PROLIP_TEXT = {
    "embed_cls": (True,),
    "embed_unc": (True,),
    "no_causal_mask": (True,),
    "pool_type": ("last",),
}
_EPSILON = 1e-6  # of the published text towers
_SCALES = ("logit_scale", "logit_bias")
# Width of a head where `config.json` does not say it, by the width of a transformer: 64 else.
_HEADS = {1152: 72, 1280: 80}
# Settings of OpenCLIP that make a network other than ours, and what ours has.
_VISION = {
    "ls_init_value": (None,),
    "attentional_pool": (False,),
    "global_average_pool": (False,),
    "input_patchnorm": (False,),
    "no_ln_pre": (False,),
    "output_tokens": (False,),
    "timm_model_name": (None,),
    "act_kwargs": (None,),
    "pool_type": ("tok",),
}
_TEXT = {
    "ls_init_value": (None,),
    "hf_model_name": (None,),
    "final_ln_after_pool": (False,),
    "output_tokens": (False,),
    "act_kwargs": (None,),
}
# Settings that say nothing of the network in inference, or that the shapes say.
_VISION_KNOWN = (
    *("layers", "width", "head_width", "mlp_ratio", "patch_size", "image_size", "unc_layers"),
    *("patch_dropout", "n_queries", "attn_pooler_queries", "attn_pooler_heads", "pos_embed_type"),
    *("norm_kwargs", "init_unc_bias", "timm_model_pretrained", "timm_pool", "timm_proj"),
    *("timm_proj_bias", "timm_drop", "timm_drop_path"),
)
_TEXT_KNOWN = (
    *("context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio", "unc_layers"),
    *("hf_tokenizer_name", "tokenizer_kwargs", "hf_model_pretrained", "hf_proj_type", "proj"),
    *("hf_pooler_type", "pooler_type", "pad_id", "norm_kwargs", "init_unc_bias", "proj_bias"),
)


def build_pcmepp(source: Source) -> DualEncoder:
    """PCME++ for zero-shot use, of the arrays of `HfPCMEPPModel`."""
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
        *_head(model.caption_encoder, "text_projection", _TEXT_VARIANCE),
    ]
    read = ("negative_scale", "shift")  # above
    weight_layouts.fill(arrays, entries, "PCME++", (*weight_layouts.COUNTERS, *read, *_UNUSED))
    return model


def build_prolip(source: Source) -> DualEncoder:
    """ProLIP, of the arrays of `ProLIPHF`: B/16, L/16, SO400M/14, H/14 and LongProLIP."""
    arrays = source.arrays
    image = encoders.open_clip_image(
        **image_settings(source, 2, _PROLIP_VISION), uncertainty_token=True
    )
    settings = text_settings(source, "text.", 2, _PROLIP_TEXT, _EPSILON)
    text = encoders.open_clip_text(**settings, uncertainty_token=True)
    dim = arrays.shape("visual.proj")[1]
    head = {"pooling": "mean", "log_variance_bias": 0.0}  # the mean of one token
    scale, bias = math.exp(arrays.scalar("logit_scale")), arrays.scalar("logit_bias")
    model = DualEncoder(
        gaussian_towers.pooled_image_encoder(image, dim, **head),
        gaussian_towers.pooled_caption_encoder(text, dim, **head),
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
    """Layout of the head: two matrices without biases."""
    head = encoder.get_layer("head")
    head.mean_map.bias.assign(0.0 * head.mean_map.bias)
    head.covariance.bias.assign(0.0 * head.covariance.bias)
    yield Entry(head.mean_map.kernel, (mean,))
    yield Entry(head.variance_map.kernel, (variance,))


def _image_head(head):
    """The entries of the image head; its mean has no bias in the file, so ours is set to 0."""
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


def image_settings(
    source: Source, tokens: int, expected: dict[str, tuple[Any, ...]]
) -> dict[str, Any]:
    """Options of `zoo.encoders.open_clip_image`, but for those of its variance."""
    config = _part(source, "vision_cfg", {**_VISION, **expected}, _VISION_KNOWN)
    arrays = source.arrays.under("visual.")
    width, _, patch_size, _ = arrays.shape("conv1.weight")
    patches = arrays.shape("positional_embedding")[0] - tokens
    size = math.isqrt(max(patches, 0)) * patch_size
    settings = {
        "image_size": size,
        "patch_size": patch_size,
        **_transformer(arrays, width, config, CLIP_EPSILON),
        "num_heads": _heads(source, width, config, "head_width"),
        "activation": _activation(source),
    }
    _check(source, config, {"image_size": size, "patch_size": patch_size, "width": width})
    return settings


def text_settings(
    source: Source,
    prefix: str,
    tokens: int,
    expected: dict[str, tuple[Any, ...]],
    epsilon: float = CLIP_EPSILON,
) -> dict[str, Any]:
    """Options of `zoo.encoders.open_clip_text`; `config.json` may say another `epsilon`."""
    config = _part(source, "text_cfg", {**_TEXT, **expected}, _TEXT_KNOWN)
    arrays = source.arrays.under(prefix)
    words, width = arrays.shape("token_embedding.weight")
    length = arrays.shape("positional_embedding")[0] - tokens
    settings = {
        "vocabulary_size": words,
        "max_length": length,
        **_transformer(arrays, width, config, epsilon),
        "num_heads": _heads(source, width, config, "heads"),
        "activation": _activation(source),
    }
    _check(source, config, {"context_length": length, "vocab_size": words, "width": width})
    return settings


def _part(source, name, expected, known):
    """One part of `config.json`, checked; {} if it is absent."""
    config = source.config.get(name) or source.config.get(name.removesuffix("_cfg")) or {}
    if not isinstance(config, dict):
        raise InputError(f"{_where(source)}: `{name}` must be an object; received {config!r}")
    check_settings(config, expected, known, f"{_where(source)}: {name}")
    return config


def _transformer(arrays: WeightArrays, width, config, epsilon):
    """The sizes of a tower's transformer, read from the shapes of its arrays."""
    return {
        "width": width,
        "num_layers": arrays.count("transformer.resblocks.{}."),
        "mlp_dim": arrays.shape("transformer.resblocks.0.mlp.c_fc.weight")[0],
        "epsilon": (config.get("norm_kwargs") or {}).get("eps", epsilon),
    }


def _heads(source, width, config, key):
    """The number of heads, which no shape says; `"head_width"` is a head's width instead."""
    given = config.get(key, _HEADS.get(width, 64) if key == "head_width" else None)
    given = width // _HEADS.get(width, 64) if given is None else given
    if not isinstance(given, int) or given < 1 or width % given:
        raise InputError(
            f"{_where(source)}: `{key}` must divide the width {width}; received {given!r}"
        )
    return width // given if key == "head_width" else given


def _activation(source):
    """CLIP's quick GELU where the configuration asks for it, else GELU."""
    return QUICK_GELU if source.config.get("quick_gelu") else GELU


def _check(source, config, received):
    """Raises InputError if a setting in `config.json` contradicts the sizes of the arrays."""
    for key, value in received.items():
        if config.get(key, value) != value:
            raise InputError(
                f"{_where(source)}: `{key}` is {config[key]!r}; the arrays are of {value!r}"
            )


def _where(source):
    """The configuration file beside the arrays, as errors name it."""
    return source.arrays.path.parent / "config.json"


PCMEPP = Family("pcmepp", (_TEXT_VARIANCE, "visual.uncertainty_proj"), build_pcmepp)
PROLIP = Family("prolip", ("text.unc_emb", "visual.unc_embedding"), build_prolip)
