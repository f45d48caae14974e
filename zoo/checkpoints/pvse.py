"""PVSE: PIE-Nets over a ResNet of torchvision and over words."""

from zoo import encoders, models
from zoo.checkpoints.family import Family, Source, check_no_order
from zoo.checkpoints.pcme import network_name
from zoo.checkpoints.tokenizers import vocabulary_tokenizer
from zoo.encoders import weight_layouts
from zoo.encoders.weight_layouts import Entry
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder

_LENGTH = 64  # the released code cuts no caption
_NET = "img_enc.pie_net"


def build(source: Source) -> DualEncoder:
    """PVSE of images and captions, of the arrays of `model.py`.

    Published (MIT): yalesong/pvse. Encoders of videos (TGIF, MRW) and order embeddings are
    refused. PIE-Net and the GRU are compared with the official code's answers at a small size, the
    ResNet by PCME's.

    Raises:
        InputError: see `zoo.from_checkpoint`.
    """
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


PVSE = Family("pvse", (f"{_NET}.fc.weight", "txt_enc.pie_net.fc.weight"), build)
