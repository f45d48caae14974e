"""PCME and PVSE: a ResNet of torchvision, words, and heads of local attention."""

from zoo import encoders, models
from zoo.checkpoints.family import Family, Source, check_no_order, vocabulary_tokenizer
from zoo.encoders import weight_layouts
from zoo.encoders.weight_arrays import WeightArrays
from zoo.encoders.weight_layouts import Entry
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder

_NETWORKS = {6: "resnet50", 23: "resnet101", 36: "resnet152"}  # by the third stage's blocks
_LENGTH = 64  # the released code cuts no caption
# Initial a and b of the released sigmoid(2x), for a file without its criterion, by dimension.
_SCALES = {1024: 15.0, 512: 5.0}
_NET = "img_enc.pie_net"


def build(source: Source) -> DualEncoder:
    """PCME, of the arrays of `models/pcme.py`: ResNet-152 for COCO, ResNet-50 for CUB. Raises as
    `zoo.from_checkpoint`."""
    arrays = source.arrays
    name = network_name(arrays, "img_enc.cnn.")
    image = encoders.torchvision_backbone(name)
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
    """PVSE of images and captions, of the arrays of `model.py`. Raises as `zoo.from_checkpoint`."""
    arrays = source.arrays
    check_no_order(source)
    if arrays.has("img_enc.rnn."):
        raise InputError(f"{arrays.path}: `img_enc` reads videos; expected one of pictures")
    name = network_name(arrays, "img_enc.cnn.")
    image = encoders.torchvision_backbone(name)
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
    names = ("criterion.negative_scale", "criterion.shift")
    if not arrays.has("criterion."):
        return (2 * _SCALES.get(dim, _SCALES[1024]),) * 2
    scale, shift = (arrays.scalar(name) for name in names)
    if not scale > 0:
        raise InputError(f"{arrays.path}: {names[0]!r} must be positive; received {scale:.3g}")
    return 2 * scale, 2 * shift


def _image_head(head):
    yield from weight_layouts.linear(head.mean_global, "img_enc.fc")
    yield from weight_layouts.pie_net(head.mean_local, "img_enc.pie_net")
    name = "img_enc.uncertain_net"
    yield from weight_layouts.local_attention(head.variance_pooling, f"{name}.attention")
    yield from weight_layouts.linear(head.variance_local, f"{name}.fc")
    yield from weight_layouts.linear(head.variance_global, f"{name}.fc2")
    biases = (f"{name}.fc.bias", f"{name}.fc2.bias")
    yield Entry(head.covariance.bias, biases, lambda local, pooled: 2 * (local + pooled))


def _text_head(model):
    head, name = model.get_layer("gaussian"), "txt_enc.uncertain_net"
    yield from weight_layouts.pie_net(head.mean_local, "txt_enc.pie_net")
    yield from weight_layouts.sentence_gru(model.get_layer("variance_gru"), f"{name}.rnn")
    yield from weight_layouts.local_attention(head.variance_pooling, f"{name}.attention")
    yield from weight_layouts.linear(head.variance_local, f"{name}.fc")
    yield Entry(head.covariance.bias, (f"{name}.fc.bias",), lambda bias: 2 * bias)


PCME = Family("pcme", ("img_enc.uncertain_net.fc.weight", "txt_enc.embed.weight"), build)


PVSE = Family("pvse", (f"{_NET}.fc.weight", "txt_enc.pie_net.fc.weight"), build_pvse)
