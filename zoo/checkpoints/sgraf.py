"""SGRAF, and the SAF and SGR of DAA, which have its layout."""

from zoo import models
from zoo.checkpoints.family import Family, Source, vocabulary_tokenizer
from zoo.encoders import weight_layouts
from zoo.encoders.weight_layouts import Entry
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder

_LENGTH = 64  # the released code cuts no caption
_GLOBAL = "sim_enc.v_global_w"


def build(source: Source) -> DualEncoder:
    """A SAF or an SGR, of the states of `model.py`: `img_enc.`, `txt_enc.` and `sim_enc.`. Raises
    as `zoo.from_checkpoint`."""
    arrays = source.arrays
    if not arrays.has("txt_enc.cap_rnn.weight_ih_l0_reverse"):
        raise InputError(f"{arrays.path}: its GRU reads in one direction; expected both (--bi_gru)")
    dim, region_dim = arrays.shape("img_enc.fc.weight")
    words, word_dim = arrays.shape("txt_enc.embed.weight")
    regions = arrays.shape(f"{_GLOBAL}.embedding_local.1.weight")[0]
    module = "sgr" if arrays.has("sim_enc.SGR_module.") else "saf"
    model = models.sgraf(
        (regions, region_dim),
        vocabulary_tokenizer(source, words, _LENGTH),
        vocabulary_size=words,
        dim=dim,
        similarity_dim=arrays.shape("sim_enc.sim_tranloc_w.weight")[0],
        module=module,
        num_steps=arrays.count("sim_enc.SGR_module.{}.") or 3,
        word_dim=word_dim,
        max_length=None,  # any, without a tokenizer
    )
    images, captions = model.image_encoder, model.caption_encoder
    text = captions.get_layer("backbone")
    entries = [
        *weight_layouts.linear(images.get_layer("projection"), "img_enc.fc"),
        *_attention(images.get_layer("pooling"), _GLOBAL, True),
        Entry(text.get_layer("words").embeddings, ("txt_enc.embed.weight",)),
        *weight_layouts.sentence_gru(text.get_layer("gru"), "txt_enc.cap_rnn"),
        *_attention(captions.get_layer("pooling"), "sim_enc.t_global_w", False),
        *_similarity(model.similarity, module),
    ]
    weight_layouts.fill(arrays, entries, module.upper())
    return model


def _attention(layer, name, normalized):
    yield from weight_layouts.linear(layer.local, f"{name}.embedding_local.0")
    yield from weight_layouts.linear(layer.pooled, f"{name}.embedding_global.0")
    yield from weight_layouts.linear(layer.score, f"{name}.embedding_common.0")
    if normalized:
        yield from weight_layouts.norm(layer.local_normalize, f"{name}.embedding_local.1")
        yield from weight_layouts.norm(layer.pooled_normalize, f"{name}.embedding_global.1")


def _similarity(layer, module):
    yield from weight_layouts.linear(layer.local, "sim_enc.sim_tranloc_w")
    yield from weight_layouts.linear(layer.pooled, "sim_enc.sim_tranglo_w")
    yield from weight_layouts.linear(layer.score, "sim_enc.sim_eval_w")
    if module == "saf":
        yield from weight_layouts.linear(layer.filtration.gate, "sim_enc.SAF_module.attn_sim_w")
        yield from weight_layouts.norm(layer.filtration.normalize, "sim_enc.SAF_module.bn")
        return
    for number, step in enumerate(layer.steps):
        name = f"sim_enc.SGR_module.{number}"
        yield from weight_layouts.linear(step.query, f"{name}.graph_query_w")
        yield from weight_layouts.linear(step.key, f"{name}.graph_key_w")
        yield from weight_layouts.linear(step.gather, f"{name}.sim_graph_w")


SGRAF = Family("sgraf", (f"{_GLOBAL}.embedding_local.0.weight", "img_enc.fc.weight"), build)
