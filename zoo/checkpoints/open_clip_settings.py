"""The settings of OpenCLIP's towers, from `config.json` and from the shapes of the arrays."""

import math
from typing import Any

from zoo.checkpoints.family import Source, check_settings
from zoo.encoders.open_clip import CLIP_EPSILON
from zoo.encoders.weight_arrays import WeightArrays
from zoo.errors import InputError
from zoo.layers.transformer import GELU, QUICK_GELU

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


def image_settings(
    source: Source, tokens: int, expected: dict[str, tuple[Any, ...]]
) -> dict[str, Any]:
    """Options of `zoo.encoders.open_clip_image`, but for those of its variance. Raises InputError
    if `config.json` and the arrays disagree, or the network is another."""
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
    """Options of `zoo.encoders.open_clip_text`, as `image_settings`, whose arrays' names have a
    prefix; `epsilon` is of the LayerNorms where `config.json` does not say it."""
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
    config = source.config.get(name) or source.config.get(name.removesuffix("_cfg")) or {}
    if not isinstance(config, dict):
        raise InputError(f"{_where(source)}: `{name}` must be an object; received {config!r}")
    check_settings(config, expected, known, f"{_where(source)}: {name}")
    return config


def _transformer(arrays: WeightArrays, width, config, epsilon):
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
    return QUICK_GELU if source.config.get("quick_gelu") else GELU


def _check(source, config, found):
    for key, value in found.items():
        if config.get(key, value) != value:
            raise InputError(
                f"{_where(source)}: `{key}` is {config[key]!r}; the arrays are of {value!r}"
            )


def _where(source):
    return source.arrays.path.parent / "config.json"
