import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import zoo
from halo_search import open_tower
from halo_search.errors import InputError
from hugging_face import write_clip, write_siglip
from tiny_hub import compared, tiny_hub

pytest.importorskip("keras_hub")
WRITERS = {"clip": write_clip, "siglip": write_siglip}


@pytest.fixture(
    scope="module",  # SigLIP's are read in tests/test_entrances.py
    params=["clip", pytest.param("siglip", marks=pytest.mark.very_slow)],
)
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    backbone, preprocessor = tiny_hub(request.param)
    WRITERS[request.param](backbone, preprocessor, folder)
    return request.param, backbone, preprocessor, folder


def test_a_folder_gives_what_its_network_gives(saved):
    name, backbone, preprocessor, folder = saved
    model = zoo.from_preset(folder)
    compared(model, backbone, preprocessor)
    assert open_tower(folder, "images").resizing == ("crop" if name == "clip" else "stretch", 1.0)


def test_what_does_not_fit_is_named(saved, tmp_path):
    folder = saved[-1]
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    arrays = load_file(folder / "model.safetensors")
    gone = arrays.pop("text_model.final_layer_norm.bias")
    save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"1 array of a .* is missing: .*final_layer_norm\.bias"):
        zoo.from_preset(tmp_path)
    arrays |= {"text_model.final_layer_norm.bias": gone, "extra.weight": gone}
    save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"1 array.* no place in a .*'extra\.weight'"):
        zoo.from_preset(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["text_config"]["hidden_act"] = "swish"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"expected `hidden_act` in .*received 'swish'"):
        zoo.from_preset(tmp_path)


def test_half_precision_and_no_tokenizer(saved, tmp_path):
    folder = saved[-1]
    arrays = load_file(folder / "model.safetensors")
    halves = {key: values.astype(np.float16) for key, values in arrays.items()}
    save_file(halves, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    model = zoo.from_preset(tmp_path)
    assert model.tokenizer is None
    assert all(weight.dtype in ("float32", "int32", "int64") for weight in model.weights)
