"""VSE∞: regions or the grid of a ResNeXt, BERT's tokens, both pooled by rank."""

import numpy as np

from zoo import encoders, models
from zoo.checkpoints.family import Family, Source, bert_tokenizer
from zoo.encoders import weight_layouts
from zoo.encoders.convolutional import torchvision_backbone
from zoo.encoders.stored_features import regions_and_hidden
from zoo.encoders.weight_layouts import Entry
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder

_LENGTH = 64
_NETWORK = "resnext101_32x8d"
_RESNET = "img_enc.backbone.resnet."
# The state holds the network twice more, in the two parts that the code runs.
_COPIES = ("img_enc.backbone.base.", "img_enc.backbone.top.", f"{_RESNET}fc.")


def build(source: Source) -> DualEncoder:
    """VSE∞ with BERT, of the states of `lib/vse.py`, over regions or WSL's ResNeXt at 512 pixels.
    Raises as `zoo.from_checkpoint`."""
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
    image = _grid(arrays) if grid else _regions(arrays)
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
            weight_layouts.torchvision(image.get_layer(_NETWORK), _RESNET)
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
    shape = arrays.shape(f"{_RESNET}layer1.0.conv2.weight")
    if shape != (256, 8, 3, 3):
        raise InputError(
            f"{arrays.path}: `img_enc.backbone` must be ResNeXt-101 32×8d (WSL), which is hosted "
            f"exactly; its first 3 × 3 convolution has the shape {shape}"
        )
    return torchvision_backbone(_NETWORK, 512, "stretch", 1.0)


def _regions(arrays):
    hidden, region_dim = arrays.shape("img_enc.mlp.layers.0.weight")
    return regions_and_hidden(region_dim, hidden)


def _hidden(backbone):
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
    "vse_infinity", ("txt_enc.gpool.linear.weight", "txt_enc.linear.weight"), build
)
