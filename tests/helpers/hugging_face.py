"""A KerasHub backbone as a Hugging Face checkpoint, by KerasHub's own table of names."""

import json

import numpy as np
from safetensors.numpy import save_file


def write_metaclip_2(backbone, preprocessor, folder):
    """Writes what `transformers` writes for a MetaCLIP 2 of the backbone's sizes."""
    from keras_hub.src.utils.transformers import convert_metaclip_2

    recorded = _Recorder()
    convert_metaclip_2.convert_weights(backbone, recorded, {"model_type": "metaclip_2"})
    save_file(recorded.arrays, folder / "model.safetensors")
    vision, text = backbone.vision_encoder, backbone.text_encoder
    config = {
        "model_type": "metaclip_2",
        "projection_dim": backbone.projection_dim,
        "vision_config": {
            **_sizes(vision),
            "patch_size": vision.patch_size,
            "image_size": vision.image_shape[0],
        },
        "text_config": {
            **_sizes(text),
            "vocab_size": text.vocabulary_size,
            "max_position_embeddings": text.max_sequence_length,
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    converter = preprocessor.image_converter
    deviation = [1 / (255 * one) for one in converter.scale]
    mean = [-one * by for one, by in zip(converter.offset, deviation, strict=True)]
    pictures = {"image_mean": mean, "image_std": deviation, "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    (folder / "sentencepiece.bpe.model").write_bytes(preprocessor.tokenizer.proto)


def _sizes(tower):
    return {
        "hidden_size": tower.hidden_dim,
        "num_hidden_layers": tower.num_layers,
        "num_attention_heads": tower.num_heads,
        "intermediate_size": tower.intermediate_dim,
    }


class _Recorder:
    """Stands for KerasHub's loader: keeps of each weight what a file would have to hold."""

    def __init__(self):
        self.arrays = {}

    def port_weight(self, keras_variable, hf_weight_key, hook_fn=None):
        wanted = np.asarray(keras_variable)
        self.arrays[hf_weight_key] = np.array(_undone(wanted, hook_fn), order="C")


def _undone(wanted, hook):
    """The array, among PyTorch's layouts of this one, of which the hook makes it."""
    for stored in _layouts(wanted):
        try:
            made = stored if hook is None else np.asarray(hook(stored, list(wanted.shape)))
        except ValueError:
            continue
        if made.shape == wanted.shape and np.array_equal(made, wanted):
            return stored
    raise AssertionError(f"no layout of {wanted.shape}")


def _layouts(array):
    yield array
    if array.ndim == 2:
        yield array.T
    if array.ndim == 3:  # (in, heads, per head) or (heads, per head, out)
        yield array.reshape(len(array), -1).T
        yield array.reshape(-1, array.shape[-1]).T
    if array.ndim == 4:
        yield array.transpose(3, 2, 0, 1)
    yield array.reshape(-1)
