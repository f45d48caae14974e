"""A KerasHub backbone as a Hugging Face checkpoint, by KerasHub's own table of names."""

import json
import types

import numpy as np
from safetensors.numpy import save_file


def write_metaclip_2(backbone, preprocessor, folder):
    """Writes what `transformers` writes for a MetaCLIP 2 of the backbone's sizes."""
    from keras_hub.src.utils.transformers import convert_metaclip_2

    recorded = _Recorder()
    convert_metaclip_2.convert_weights(backbone, recorded, {"model_type": "metaclip_2"})
    save_file(recorded.arrays, folder / "model.safetensors")
    config = {"model_type": "metaclip_2", "projection_dim": backbone.projection_dim}
    _write_config(backbone, preprocessor, folder, config)
    (folder / "sentencepiece.bpe.model").write_bytes(preprocessor.tokenizer.proto)


def _write_config(backbone, preprocessor, folder, config):
    vision, text = backbone.vision_encoder, backbone.text_encoder
    config |= {
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
    scale, offset = (np.broadcast_to(x, 3) for x in (converter.scale, converter.offset))
    deviation = [float(1 / (255 * one)) for one in scale]
    mean = [float(-one * by) for one, by in zip(offset, deviation, strict=True)]
    pictures = {"image_mean": mean, "image_std": deviation, "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))


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


def write_clip(backbone, preprocessor, folder):
    """Writes what `transformers` writes for a CLIP."""
    write_clip_arrays(backbone, folder / "model.safetensors")
    config = {"model_type": "clip", "projection_dim": backbone.projection_dim}
    _write_config(backbone, preprocessor, folder, config)
    tokenizer = preprocessor.tokenizer
    (folder / "vocab.json").write_text(json.dumps(dict(tokenizer.vocabulary)))
    lines = ["#version: 0.2", *tokenizer.merges]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")


def write_clip_arrays(backbone, path):
    """A CLIP's arrays, by KerasHub's table of MetaCLIP 2's names."""
    from keras_hub.src.utils.transformers import convert_metaclip_2

    recorded, vision = _Recorder(), backbone.vision_encoder
    same = types.SimpleNamespace(
        vision_encoder=vision,
        text_encoder=backbone.text_encoder,
        vision_post_layer_norm=vision.layer_norm,
        vision_projection=backbone.vision_projection,
        text_projection=backbone.text_projection,
        metaclip_2_head=backbone.clip_head,
    )
    convert_metaclip_2.convert_weights(same, recorded, {})
    save_file(recorded.arrays, path)


def write_siglip(backbone, preprocessor, folder):
    """Writes what `transformers` writes for a SigLIP, each array as PyTorch keeps it."""
    arrays, vision, text = {}, backbone.vision_encoder, backbone.text_encoder

    def put(name, values):
        arrays[name] = np.ascontiguousarray(np.asarray(values, "float32"))

    def dense(name, layer):
        put(f"{name}.weight", np.asarray(layer.kernel).T)
        put(f"{name}.bias", layer.bias)

    def norm(name, layer):
        put(f"{name}.weight", layer.gamma)
        put(f"{name}.bias", layer.beta)

    def heads(layer):
        parts = (layer.query_dense, layer.key_dense, layer.value_dense)
        weights = [np.asarray(p.kernel).reshape(p.kernel.shape[0], -1).T for p in parts]
        return weights, [np.asarray(p.bias).reshape(-1) for p in parts]

    def output(name, layer):
        kernel = np.asarray(layer.output_dense.kernel)
        put(f"{name}.out_proj.weight", kernel.reshape(-1, kernel.shape[-1]).T)
        put(f"{name}.out_proj.bias", layer.output_dense.bias)

    patches = vision.embedding.patch_embedding
    start = "vision_model.embeddings.patch_embedding"
    put(f"{start}.weight", np.asarray(patches.kernel).transpose(3, 2, 0, 1))
    put(f"{start}.bias", patches.bias)
    for side, tower in (("vision", vision), ("text", text)):
        table = f"{side}_model.embeddings.position_embedding.weight"
        put(table, tower.embedding.position_embedding.embeddings)
        for number, layer in enumerate(tower.encoder_layers):
            name = f"{side}_model.encoder.layers.{number}"
            for letter, weight, bias in zip("qkv", *heads(layer.self_attn), strict=True):
                put(f"{name}.self_attn.{letter}_proj.weight", weight)
                put(f"{name}.self_attn.{letter}_proj.bias", bias)
            output(f"{name}.self_attn", layer.self_attn)
            norm(f"{name}.layer_norm1", layer.layer_norm1)
            norm(f"{name}.layer_norm2", layer.layer_norm2)
            dense(f"{name}.mlp.fc1", layer.mlp.fc1)
            dense(f"{name}.mlp.fc2", layer.mlp.fc2)
    put("text_model.embeddings.token_embedding.weight", text.embedding.token_embedding.embeddings)
    norm("vision_model.post_layernorm", vision.post_layer_norm)
    norm("text_model.final_layer_norm", text.post_layer_norm)
    dense("text_model.head", text.head)
    head = vision.head
    put("vision_model.head.probe", head.probe)
    weights, biases = heads(head.attention)
    put("vision_model.head.attention.in_proj_weight", np.concatenate(weights))
    put("vision_model.head.attention.in_proj_bias", np.concatenate(biases))
    output("vision_model.head.attention", head.attention)
    norm("vision_model.head.layernorm", head.layer_norm)
    dense("vision_model.head.mlp.fc1", head.mlp.fc1)
    dense("vision_model.head.mlp.fc2", head.mlp.fc2)
    for name in ("logit_scale", "logit_bias"):
        put(name, np.reshape(getattr(backbone.siglip_head, name), (1,)))
    save_file(arrays, folder / "model.safetensors")
    _write_config(backbone, preprocessor, folder, {"model_type": "siglip"})
    (folder / "spiece.model").write_bytes(preprocessor.tokenizer.proto)
