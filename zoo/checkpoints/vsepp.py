"""VSE++, VSRN, SGRAF (also DAA's), PCME, PVSE and VSE∞, of the layouts of their codes."""

import numpy as np

from halo_search.errors import InputError
from zoo import encoders, models
from zoo.checkpoints.family import (
    Family,
    Source,
    bert_tokenizer,
    check_no_order,
    vocabulary_tokenizer,
)
from zoo.encoders import weight_layouts
from zoo.encoders.convolutional import torchvision_backbone
from zoo.encoders.stored_features import regions_and_hidden
from zoo.encoders.weight_arrays import WeightArrays
from zoo.encoders.weight_layouts import Entry
from zoo.models.dual_encoder import DualEncoder

_LENGTH = 64  # the released code cuts no caption
_GLOBAL = "sim_enc.v_global_w"
_NETWORKS = {6: "resnet50", 23: "resnet101", 36: "resnet152"}  # by the third stage's blocks
# Initial a and b of the released sigmoid(2x), for a file without its criterion, by dimension.
_SCALES = {1024: 15.0, 512: 5.0}
_NET = "img_enc.pie_net"
# VSE∞'s, whose state holds the network twice more, in the two parts that the code runs.
_RESNEXT, _RESNET = "resnext101_32x8d", "img_enc.backbone.resnet."
_COPIES = ("img_enc.backbone.base.", "img_enc.backbone.top.", f"{_RESNET}fc.")


def build_vsepp(source: Source) -> DualEncoder:
    """VSE++, of the states of `model.py`: a ResNet of torchvision, or stored features."""
    arrays = source.arrays
    check_no_order(source)
    dim, width = arrays.shape("img_enc.fc.weight")
    images, entries = (width,), []
    if arrays.has("img_enc.cnn."):
        prefix = "img_enc.cnn.module." if arrays.has("img_enc.cnn.module.") else "img_enc.cnn."
        if not arrays.has(f"{prefix}layer1."):
            raise InputError(
                f"{arrays.path}: `img_enc.cnn` must be a ResNet; the zoo has no VGG19 nor AlexNet"
            )
        name = network_name(arrays, prefix)
        images = torchvision_backbone(name)
        entries += weight_layouts.torchvision(images.get_layer(name), prefix)
    tokenizer, words = _words(source)
    model = models.vsepp(images, tokenizer, dim=dim, caption_backbone=words)
    entries += weight_layouts.linear(model.image_encoder.get_layer("embedding"), "img_enc.fc")
    entries += _sentence(model)
    ignored = (*weight_layouts.COUNTERS, "img_enc.cnn.module.fc.", "img_enc.cnn.fc.")
    weight_layouts.fill(arrays, entries, "VSE++", ignored)
    return model


def build_vsrn(source: Source) -> DualEncoder:
    """VSRN, of the states of `model.py`, with COCO's or Flickr30K's normalisations as released."""
    arrays = source.arrays
    check_no_order(source)
    dim, region_dim = arrays.shape("img_enc.fc.weight")
    tokenizer, words = _words(source)
    model = models.vsrn(
        (None, region_dim),
        tokenizer,
        dim=dim,
        caption_backbone=words,
        num_layers=arrays.count("img_enc.Rs_GCN_{}."),
        released="f30k" if arrays.has("img_enc.bn.") else "coco",
    )
    of = model.image_encoder.get_layer
    entries = [
        *weight_layouts.linear(of("embedding"), "img_enc.fc"),
        *weight_layouts.sentence_gru(of("reasoning").reader, "img_enc.img_rnn"),
        *_sentence(model),
    ]
    for number, graph in enumerate(of("reasoning").graphs, start=1):
        name = f"img_enc.Rs_GCN_{number}"
        for part, layer in (("theta", "theta"), ("phi", "phi"), ("g", "g"), ("w", "W.0")):
            entries += weight_layouts.linear(getattr(graph, part), f"{name}.{layer}")
        entries += weight_layouts.norm(graph.normalize, f"{name}.W.1")
    if arrays.has("img_enc.bn."):
        entries += weight_layouts.norm(of("normalize"), "img_enc.bn")
    weight_layouts.fill(arrays, entries, "VSRN")
    return model


def _words(source):
    """The tokenizer, and a GRU as wide as the file's."""
    words, word_dim = source.arrays.shape("txt_enc.embed.weight")
    dim = source.arrays.shape("txt_enc.rnn.weight_hh_l0")[1]
    tokenizer = vocabulary_tokenizer(source, words, _LENGTH)
    length = None if tokenizer is None else tokenizer.max_words
    gru = encoders.gru(words, dim, word_dim, bidirectional=False, max_length=length)
    return tokenizer, gru


def _sentence(model):
    """The entries of word vectors and sentence GRU."""
    text = model.caption_encoder.get_layer("backbone")
    yield Entry(text.get_layer("words").embeddings, ("txt_enc.embed.weight",))
    yield from weight_layouts.sentence_gru(text.get_layer("gru"), "txt_enc.rnn")


def build_sgraf(source: Source) -> DualEncoder:
    """A SAF or an SGR, of the states of `model.py`: `img_enc.`, `txt_enc.` and `sim_enc.`."""
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
    """The entries of a `GlobalAttention`; `normalized` layers have BatchNorm."""
    yield from weight_layouts.linear(layer.local, f"{name}.embedding_local.0")
    yield from weight_layouts.linear(layer.pooled, f"{name}.embedding_global.0")
    yield from weight_layouts.linear(layer.score, f"{name}.embedding_common.0")
    if normalized:
        yield from weight_layouts.norm(layer.local_normalize, f"{name}.embedding_local.1")
        yield from weight_layouts.norm(layer.pooled_normalize, f"{name}.embedding_global.1")


def _similarity(layer, module):
    """The entries of SGRAF's similarity; `module` is "saf" or "sgr"."""
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


SGRAF = Family("sgraf", (f"{_GLOBAL}.embedding_local.0.weight", "img_enc.fc.weight"), build_sgraf)
VSRN = Family("vsrn", ("img_enc.Rs_GCN_1.g.weight", "txt_enc.rnn.weight_ih_l0"), build_vsrn)
VSEPP = Family("vsepp", ("img_enc.fc.weight", "txt_enc.rnn.weight_ih_l0"), build_vsepp)


def build_pcme(source: Source) -> DualEncoder:
    """PCME, of the arrays of `models/pcme.py`: ResNet-152 for COCO, ResNet-50 for CUB."""
    arrays = source.arrays
    name = network_name(arrays, "img_enc.cnn.")
    image = torchvision_backbone(name)
    dim = arrays.shape("img_enc.fc.weight")[0]
    words, word_dim = arrays.shape("txt_enc.embed.weight")
    scale, shift = _scale_and_shift(arrays, dim)
    model = models.pcme(
        image,
        vocabulary_tokenizer(source, words, _LENGTH),
        vocabulary_size=words,
        dim=dim,
        word_dim=word_dim,
        max_length=None,  # any, without a tokenizer
        scale=scale,
        shift=shift,
        at_last_word=True,
        log_deviation=True,
    )
    text = model.caption_encoder.get_layer("backbone")
    entries = [
        *weight_layouts.torchvision(image.get_layer(name), "img_enc.cnn."),
        *_image_head(model.image_encoder.get_layer("head").get_layer("gaussian")),
        Entry(text.get_layer("words").embeddings, ("txt_enc.embed.weight",)),
        *weight_layouts.sentence_gru(text.get_layer("gru"), "txt_enc.rnn"),
        *_text_head(model.caption_encoder.get_layer("head")),
    ]
    ignored = (*weight_layouts.COUNTERS, "criterion.", "img_enc.cnn.fc.")
    weight_layouts.fill(arrays, entries, "PCME", ignored)
    return model


def network_name(arrays: WeightArrays, prefix: str) -> str:
    """Which ResNet of torchvision has these arrays. Raises InputError if none has."""
    blocks = arrays.count(f"{prefix}layer3.{{}}.")
    if blocks not in _NETWORKS:
        raise InputError(
            f"{arrays.path}: `{prefix.rstrip('.')}` must be one of "
            f"{', '.join(_NETWORKS.values())}; its third stage has {blocks} blocks"
        )
    return _NETWORKS[blocks]


def build_pvse(source: Source) -> DualEncoder:
    """PVSE of images and captions, of the arrays of `model.py`."""
    arrays = source.arrays
    check_no_order(source)
    if arrays.has("img_enc.rnn."):
        raise InputError(f"{arrays.path}: `img_enc` reads videos; expected one of pictures")
    name = network_name(arrays, "img_enc.cnn.")
    image = torchvision_backbone(name)
    dim = arrays.shape("img_enc.fc.weight")[0]
    words, word_dim = arrays.shape("txt_enc.embed.weight")
    tokenizer = vocabulary_tokenizer(source, words, _LENGTH)
    length = None if tokenizer is None else tokenizer.max_words
    text = encoders.gru(words, dim, word_dim, max_length=length, at_last_word=True)
    model = models.pvse(
        image,
        tokenizer,
        dim=dim,
        num_embeddings=arrays.shape(f"{_NET}.attention.w_2.weight")[0],
        caption_backbone=text,
    )
    images, captions = (
        encoder.get_layer("head") for encoder in (model.image_encoder, model.caption_encoder)
    )
    entries = [
        *weight_layouts.torchvision(image.get_layer(name), "img_enc.cnn."),
        *weight_layouts.linear(images.get_layer("global"), "img_enc.fc"),
        *weight_layouts.pie_net(images.get_layer("image_set"), _NET),
        Entry(text.get_layer("words").embeddings, ("txt_enc.embed.weight",)),
        *weight_layouts.sentence_gru(text.get_layer("gru"), "txt_enc.rnn"),
        *weight_layouts.pie_net(captions.get_layer("caption_set"), "txt_enc.pie_net"),
    ]
    weight_layouts.fill(arrays, entries, "PVSE", (*weight_layouts.COUNTERS, "img_enc.cnn.fc."))
    return model


def _scale_and_shift(arrays, dim):
    """PCME's scale and shift, twice the stored ones, since its code has sigmoid(2x); the paper's
    where the file has no criterion."""
    names = ("criterion.negative_scale", "criterion.shift")
    if not arrays.has("criterion."):
        return (2 * _SCALES.get(dim, _SCALES[1024]),) * 2
    scale, shift = (arrays.scalar(name) for name in names)
    if not scale > 0:
        raise InputError(f"{arrays.path}: {names[0]!r} must be positive; received {scale:.3g}")
    return 2 * scale, 2 * shift


def _image_head(head):
    """The entries of PCME's image head; its log σ is half of our log σ², so biases are doubled."""
    yield from weight_layouts.linear(head.mean_global, "img_enc.fc")
    yield from weight_layouts.pie_net(head.mean_local, "img_enc.pie_net")
    name = "img_enc.uncertain_net"
    yield from weight_layouts.local_attention(head.variance_pooling, f"{name}.attention")
    yield from weight_layouts.linear(head.variance_local, f"{name}.fc")
    yield from weight_layouts.linear(head.variance_global, f"{name}.fc2")
    biases = (f"{name}.fc.bias", f"{name}.fc2.bias")
    yield Entry(head.covariance.bias, biases, lambda local, pooled: 2 * (local + pooled))


def _text_head(model):
    """The entries of PCME's caption head; biases are doubled as in `_image_head`."""
    head, name = model.get_layer("gaussian"), "txt_enc.uncertain_net"
    yield from weight_layouts.pie_net(head.mean_local, "txt_enc.pie_net")
    yield from weight_layouts.sentence_gru(model.get_layer("variance_gru"), f"{name}.rnn")
    yield from weight_layouts.local_attention(head.variance_pooling, f"{name}.attention")
    yield from weight_layouts.linear(head.variance_local, f"{name}.fc")
    yield Entry(head.covariance.bias, (f"{name}.fc.bias",), lambda bias: 2 * bias)


PCME = Family("pcme", ("img_enc.uncertain_net.fc.weight", "txt_enc.embed.weight"), build_pcme)
PVSE = Family("pvse", (f"{_NET}.fc.weight", "txt_enc.pie_net.fc.weight"), build_pvse)


def build_vse_infinity(source: Source) -> DualEncoder:
    """VSE∞ with BERT, of the states of `lib/vse.py`, over regions or WSL's ResNeXt, 512 pixels."""
    arrays = source.arrays
    bert = arrays.under("txt_enc.bert.")
    words, width = bert.shape("embeddings.word_embeddings.weight")
    text = encoders.bert(
        vocabulary_size=words,
        max_length=_LENGTH,
        exact_gelu=True,
        num_layers=bert.count("encoder.layer.{}."),
        num_heads=source.config.get("num_attention_heads", max(width // 64, 1)),
        hidden_dim=width,
        intermediate_dim=bert.shape("encoder.layer.0.intermediate.dense.weight")[0],
    )
    grid = arrays.has("img_enc.backbone.")
    name = "img_enc.image_encoder" if grid else "img_enc"
    if grid:
        image = _grid(arrays)
    else:
        hidden, region_dim = arrays.shape("img_enc.mlp.layers.0.weight")
        image = regions_and_hidden(region_dim, hidden)
    model = models.vse_infinity(
        image,
        bert_tokenizer(source, words, _LENGTH),
        arrays.shape(f"{name}.fc.weight")[0],
        caption_backbone=text,
        drop_rate=0.0,
    )
    images, captions = (
        encoder.get_layer("head") for encoder in (model.image_encoder, model.caption_encoder)
    )
    entries = [
        *(
            weight_layouts.torchvision(image.get_layer(_RESNEXT), _RESNET)
            if grid
            else _hidden(image)
        ),
        *_map(images.mean_map, name, not grid),
        *weight_layouts.generalized_pooling(images.mean_pooling, f"{name}.gpool"),
        *weight_layouts.bert(text.get_layer("bert"), "txt_enc.bert"),
        *weight_layouts.linear(captions.mean_map, "txt_enc.linear"),
        *weight_layouts.generalized_pooling(captions.mean_pooling, "txt_enc.gpool"),
    ]
    ignored = (
        *weight_layouts.COUNTERS,
        *("txt_enc.bert.pooler.", "img_enc.mlp.bns.1."),  # neither is called
        *(_COPIES if grid else ()),
    )
    weight_layouts.fill(arrays, entries, "VSE∞", ignored)
    return model


def _grid(arrays):
    """The network of VSE∞'s grids. Raises InputError if the arrays are of another one."""
    shape = arrays.shape(f"{_RESNET}layer1.0.conv2.weight")
    if shape != (256, 8, 3, 3):
        raise InputError(
            f"{arrays.path}: `img_enc.backbone` must be ResNeXt-101 32×8d (WSL), which is hosted "
            f"exactly; its first 3 × 3 convolution has the shape {shape}"
        )
    return torchvision_backbone(_RESNEXT, 512, "stretch", 1.0)


def _hidden(backbone):
    """The entries of the hidden layer of VSE∞'s MLP over regions."""
    yield from weight_layouts.linear(backbone.get_layer("hidden"), "img_enc.mlp.layers.0")
    yield from weight_layouts.norm(backbone.get_layer("normalize"), "img_enc.mlp.bns.0")


def _map(layer, name, residual):
    """The linear map; with the MLP's last layer below it, since both are added."""
    if not residual:
        yield from weight_layouts.linear(layer, f"{name}.fc")
        return
    parts = (f"{name}.fc", f"{name}.mlp.layers.1")
    weights = tuple(f"{part}.weight" for part in parts)
    yield Entry(layer.kernel, weights, lambda w, u: np.concatenate([w.T, u.T]))
    yield Entry(layer.bias, tuple(f"{part}.bias" for part in parts), np.add)


VSE_INFINITY = Family(
    "vse_infinity", ("txt_enc.gpool.linear.weight", "txt_enc.linear.weight"), build_vse_infinity
)
