"""Sentences by a pretrained BERT: MiniLM, E5, BGE and BERT itself, as a caption tower."""

import os
import pathlib
from typing import Any

import keras
from keras import ops

from halo_search.errors import InputError
from halo_search.files.environment import cache_folder
from halo_search.files.json_files import read_object
from zoo.encoders.words import PADDING, activate_exactly, network_of_folder
from zoo.layers.compat import all_layers
from zoo.layers.pooling import MeanPooling
from zoo.layers.transformer import GELU, TANH_GELU, TransformerBlock, WordPieces

MEAN, FIRST = POOLINGS = ("mean", "first")
OF_MODE = {"pooling_mode_mean_tokens": MEAN, "pooling_mode_cls_token": FIRST}
# Of `hidden_act`: whether it is GELU's approximation by tanh.
IS_APPROXIMATE = {"gelu": False, "gelu_new": True, "gelu_pytorch_tanh": True}
SITE = "https://huggingface.co"
OWNER = "sentence-transformers"  # of a name without one
# The weights come last: where they are, everything has been asked for.
FILES = ("1_Pooling/config.json", "config.json", "tokenizer.json", "model.safetensors")
OPTIONAL = FILES[:1]


@keras.saving.register_keras_serializable(package="halo")
class Frozen(keras.Model):
    """A Functional model that is not trained, nor after it was loaded. Keras itself forgets, when
    it loads a layer made of layers, that the inner ones were frozen."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for layer in all_layers(self):  # itself too
            layer.trainable = False


def sentences(
    preset: str | os.PathLike,
    max_length: int = 64,
    pooling: str | None = None,
    trainable_blocks: int = 0,
) -> keras.Model:
    """A pretrained BERT's vector of a sentence, for `zoo.data.BertTokenizer`'s ids.

    ```python
    tokenizer = zoo.data.read_bert_tokenizer("all-MiniLM-L6-v2")
    backbone = zoo.encoders.sentences("all-MiniLM-L6-v2")
    captions = zoo.encoders.sentence_caption_encoder(backbone, dim=256)
    ```

    Where no block is trained, store its `"pooled"` once and train
    `sentence_caption_encoder(zoo.encoders.vectors(width), dim)` on it: the layer `"embedding"` is
    the same. E5 expects its prefix, such as `"query: "`, in the strings themselves.

    Args:
        preset: a local folder with a Hugging Face checkpoint of BERT (`config.json`,
            `model.safetensors`), or with a KerasHub preset of a `BertBackbone`; or the name of a
            checkpoint on Hugging Face, which is fetched once: `"all-MiniLM-L6-v2"`.
        max_length: length of a caption in ids.
        pooling: `"mean"` of the tokens or the `"first"` token; None for what the folder's
            `1_Pooling/config.json` says, and the mean where there is none.
        trainable_blocks: how many of the last blocks are trained. The rest is frozen. With 0
            nothing is dropped in training either, so a caption's vector is always the same.

    Returns:
        A Functional `keras.Model` named `"backbone"` from ids `(batch, max_length)` int32 to a
        dict: `"features"` the last hidden states `(batch, max_length, width)`, `"mask"` bool
        `(batch, max_length)`, `"pooled"` `(batch, width)`.

    Raises:
        InputError: if the folder is no such checkpoint, reads less than `max_length` tokens, or
            pools or activates in another way.
        ValueError: if `pooling` is another word, or there are fewer blocks.
    Reference: Reimers and Gurevych, "Sentence-BERT", EMNLP 2019, section 3.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise ValueError(f"`pooling` must be one of {', '.join(POOLINGS)}; received {pooling!r}")
    # Keras passes `training` on to what is called with `training=False`: rates of 0 stay.
    settings = {} if trainable_blocks else {"dropout": 0.0}
    folder = text_folder(preset)
    network = network_of_folder(folder, max_length, **settings)
    pooling = pooling or _pooling_of_folder(folder)
    blocks = network.transformer_layers
    if isinstance(trainable_blocks, bool) or trainable_blocks not in range(len(blocks) + 1):
        raise ValueError(
            f"`trainable_blocks` must be an integer between 0 and {len(blocks)}, the blocks of "
            f"{folder}; received {trainable_blocks!r}"
        )
    _activate_as_trained(blocks, folder)
    return sentences_of(network, max_length, pooling, trainable_blocks)


def sentences_of(
    network: keras.Model, max_length: int, pooling: str = MEAN, trainable_blocks: int = 0
) -> keras.Model:
    """`sentences` with the weights of a model that has KerasHub's layers of a `BertBackbone`. What
    it returns is made of layers of Keras and of this package, so it loads without KerasHub."""
    embed, blocks = _own_layers(network)
    composed = _composed(embed, blocks, max_length, pooling == MEAN, trainable_blocks)
    for layer, weights in _own_weights(network, embed, blocks):
        layer.set_weights(weights)
    return composed


def with_trainable_blocks(
    backbone: keras.Model, trainable_blocks: int, dropout: float = 0.0
) -> keras.Model:
    """A copy of `sentences`, such as that of a preset, with other blocks to train.

    ```python
    model = zoo.from_preset("photos_pfe")
    backbone = model.caption_encoder.get_layer("backbone")
    thawed = zoo.encoders.with_trainable_blocks(backbone, trainable_blocks=3, dropout=0.1)
    ```

    Args:
        backbone: what `sentences` returns.
        trainable_blocks: how many of the last blocks are trained. The rest is frozen.
        dropout: share of the numbers that a training step zeroes in the trained blocks.
    """
    layers = {layer.name: layer for layer in all_layers(backbone)}
    olds = [layer for layer in layers.values() if isinstance(layer, TransformerBlock)]
    olds.sort(key=lambda block: int(block.name.rpartition("_")[2]))
    embed, num_frozen = WordPieces.from_config(layers["word_pieces"].get_config()), len(olds)
    blocks = [
        TransformerBlock.from_config(
            {**block.get_config(), "dropout": dropout * (number >= num_frozen - trainable_blocks)}
        )
        for number, block in enumerate(olds)
    ]
    length = backbone.input_shape[1]
    network = _composed(embed, blocks, length, "pooling" in layers, trainable_blocks)
    for new, old in zip([embed, *blocks], [layers["word_pieces"], *olds], strict=True):
        new.set_weights(old.get_weights())
    return network


def _composed(embed, blocks, max_length, by_mean, trainable_blocks):
    """The network of `sentences` out of its layers."""
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    inputs = {"ids": ids, "mask": ops.not_equal(ids, PADDING)}
    num_frozen = len(blocks) - trainable_blocks
    inside = {
        "ids": keras.Input((None,), dtype="int32", name="ids"),
        "mask": keras.Input((None,), dtype="bool", name="mask"),
    }
    states = embed(inside["ids"])
    for block in blocks[:num_frozen]:
        states = block(states, padding_mask=inside["mask"])
    states = Frozen(inside, states, name="frozen")(inputs)
    for block in blocks[num_frozen:]:
        block.trainable = True
        states = block(states, padding_mask=inputs["mask"])
    pooled = MeanPooling(name="pooling")(states, mask=inputs["mask"]) if by_mean else states[:, 0]
    outputs = {"features": states, "mask": inputs["mask"], "pooled": pooled}
    return keras.Model(ids, outputs, name="backbone")


def _own_layers(network):
    """The layers of `sentences_of`, of the sizes of KerasHub's."""
    words, places = (network.get_layer(f"{name}_embedding") for name in ("token", "position"))
    norm, drop = (network.get_layer(f"embeddings_{name}") for name in ("layer_norm", "dropout"))
    sizes = words.input_dim, words.output_dim, places.sequence_length
    embed = WordPieces(*sizes, epsilon=norm.epsilon, dropout=drop.rate, name="word_pieces")
    return embed, [
        TransformerBlock(
            block.num_heads,
            block.intermediate_dim,
            GELU if block.activation is keras.activations.gelu else TANH_GELU,
            block.layer_norm_epsilon,
            post_norm=True,
            dropout=block.dropout,
            name=f"block_{number}",
        )
        for number, block in enumerate(_hub_blocks(network))
    ]


def _own_weights(network, embed, blocks):
    """`(layer, weights)` of the layers of `sentences_of`."""
    pieces, places, sentences, norm = (
        network.get_layer(name).get_weights()
        for name in (
            *("token_embedding", "position_embedding", "segment_embedding"),
            "embeddings_layer_norm",
        )
    )
    yield embed, [pieces[0], places[0], sentences[0][0], *norm]  # a caption is a first sentence
    for block, other in zip(blocks, _hub_blocks(network), strict=True):
        yield block.attention, other._self_attention_layer.get_weights()
        yield block.layer_norm_1, other._self_attention_layer_norm.get_weights()
        yield block.dense_1, other._feedforward_intermediate_dense.get_weights()
        yield block.dense_2, other._feedforward_output_dense.get_weights()
        yield block.layer_norm_2, other._feedforward_layer_norm.get_weights()


def _hub_blocks(network):
    """The transformer blocks of a KerasHub network, lowest first."""
    return [layer for layer in network.layers if layer.name.startswith("transformer_layer_")]


def text_folder(name_or_folder: str | os.PathLike) -> pathlib.Path:
    """The folder of a checkpoint; one named on Hugging Face, such as `"intfloat/e5-small-v2"`, is
    fetched once. Raises InputError if there is no folder and nothing can be fetched."""
    path = pathlib.Path(os.fspath(name_or_folder)).expanduser()
    name = str(name_or_folder)
    is_name = name.count("/") <= 1 and not name.startswith((".", "/", "~"))
    if path.exists() or not name or not is_name:
        return path
    name = name if "/" in name else f"{OWNER}/{name}"
    folder = cache_folder("text", *name.split("/"))
    if (folder / FILES[-1]).exists():
        return folder
    for file in FILES:
        place = folder / file
        if place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            keras.utils.get_file(
                place.name,
                f"{SITE}/{name}/resolve/main/{file}",
                cache_dir=place.parent,
                cache_subdir=".",
            )
        except Exception as error:  # `get_file` raises a bare Exception when offline
            if file in OPTIONAL and "404" in str(error):
                continue
            raise InputError(
                f"{name_or_folder}: no such folder, and {name} could not be fetched ({error})"
            ) from error
    return folder


def _pooling_of_folder(folder):
    """The pooling that a folder of sentence-transformers states, or the mean without one. Raises
    InputError for a pooling that is not known here."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return MEAN
    stored = read_object(path)
    modes = [name for name in stored if name.startswith("pooling_mode") and stored[name] is True]
    if len(modes) != 1 or modes[0] not in OF_MODE:
        raise InputError(
            f"{path}: expected one of {', '.join(OF_MODE)} to be true; received "
            f"{', '.join(modes) or 'none'}"
        )
    return OF_MODE[modes[0]]


def _activate_as_trained(blocks, folder):
    """Gives the blocks Hugging Face's activation; KerasHub always takes tanh's approximation."""
    name = read_object(folder / "config.json").get("hidden_act")
    if name is None:  # KerasHub's own preset
        return
    if name not in IS_APPROXIMATE:
        raise InputError(
            f"{folder / 'config.json'}: `hidden_act` must be one of {', '.join(IS_APPROXIMATE)}; "
            f"received {name!r}"
        )
    if not IS_APPROXIMATE[name]:
        activate_exactly(blocks)
