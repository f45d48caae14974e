"""Damaged, foreign and hostile checkpoints: one sentence each, and nothing of them runs."""

import pickle
import sys
import types

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import memory
import released
import zoo
from zoo.encoders.weight_arrays import WeightArrays
from zoo.errors import InputError, MissingPackageError

ABOUT, SHAPES, _ = released.described("prolip_tiny")


@pytest.fixture
def arrays():
    return released.weights(SHAPES)


def load(tmp_path, arrays):
    return zoo.from_checkpoint(released.write(tmp_path / "hub", arrays, ABOUT["config"]))


@pytest.mark.parametrize("keep", [0, 7, 200, -4])
def test_a_file_that_was_cut_off(tmp_path, arrays, keep):
    folder = released.write(tmp_path, arrays, ABOUT["config"])
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"model.safetensors: cannot be read as .safetensors: "):
        zoo.from_checkpoint(folder)
    with pytest.raises(InputError, match="cannot be read"):
        zoo.checkpoints.family_of(path)


@pytest.mark.parametrize("name", ["model.npz", "model.safetensors"])
def test_a_file_of_another_kind(tmp_path, name):
    (tmp_path / name).write_text("<html>404</html>")
    with pytest.raises(InputError, match=rf"{name}: cannot be read as"):
        zoo.from_checkpoint(tmp_path / name)


def test_missing_arrays_are_counted_and_three_are_named(tmp_path, arrays):
    for name in ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"):
        del arrays[f"text.transformer.resblocks.1.{name}"]
    first = r"'text.transformer.resblocks.1.ln_1.weight', .*ln_1.bias', .*ln_2.weight' …"
    with pytest.raises(InputError, match=rf"4 arrays of ProLIP are missing: {first}"):
        load(tmp_path, arrays)


def test_arrays_that_are_left_over_are_counted_and_three_are_named(tmp_path, arrays):
    arrays |= {f"visual.extra_{number}": np.ones(2, "float32") for number in range(5)}
    first = "'visual.extra_0', 'visual.extra_1', 'visual.extra_2' …"
    with pytest.raises(InputError, match=f"5 arrays have no place in ProLIP: {first}"):
        load(tmp_path, arrays)


def test_one_array_of_another_shape(tmp_path, arrays):
    arrays["text.ln_final.weight"] = np.ones(31, "float32")
    words = r"'text.ln_final.weight' should have the shape \(32,\) in Keras' layout; it has \(31,"
    with pytest.raises(InputError, match=words):
        load(tmp_path, arrays)


def test_an_array_that_is_not_finite(tmp_path, arrays):
    arrays["visual.proj"][3, 4] = np.nan
    with pytest.raises(InputError, match=r"'visual.proj' has NaN or infinite values"):
        load(tmp_path, arrays)


def test_another_family_than_was_said(tmp_path, arrays):
    folder = released.write(tmp_path, arrays, ABOUT["config"])
    words = r"`family` 'pcmepp' has arrays .*, which this file lacks; they are those of `family` "
    with pytest.raises(InputError, match=words + "'prolip'"):
        zoo.from_checkpoint(folder, family="pcmepp")
    with pytest.raises(ValueError, match=r"`family` must be one of .*'prolip'.*; received 'clip'"):
        zoo.from_checkpoint(folder, family="clip")


def test_arrays_of_no_family(tmp_path):
    save_file({"weight": np.ones(2, "float32")}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match=r"of no published family \(.*\); the first are 'weight'"):
        zoo.from_checkpoint(tmp_path / "other.safetensors")
    assert zoo.checkpoints.family_of(tmp_path / "other.safetensors") is None


def test_folders_without_one_file_of_weights(tmp_path, arrays):
    assert zoo.checkpoints.family_of(tmp_path) is None
    assert zoo.checkpoints.family_of(tmp_path / "none") is None
    with pytest.raises(InputError, match="expected one file of weights; it has 0: none"):
        zoo.from_checkpoint(tmp_path)
    for name in ("a", "b"):
        save_file({"weight": np.ones(2, "float32")}, tmp_path / f"{name}.safetensors")
    with pytest.raises(InputError, match=r"it has 2: a.safetensors, b.safetensors"):
        zoo.from_checkpoint(tmp_path)
    with pytest.raises(InputError, match="expected a file of weights"):
        zoo.from_checkpoint(tmp_path / "none")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_half_precision_is_widened(tmp_path, arrays, dtype):
    half = {name: array.astype(dtype) for name, array in arrays.items()}
    model = load(tmp_path, half)
    kernel = model.image_encoder.get_layer("head").mean_map.kernel
    assert kernel.dtype == "float32"
    np.testing.assert_array_equal(kernel, half["visual.proj"].astype("float32"))


def test_npz_is_the_same(tmp_path, arrays):
    np.savez(tmp_path / "model.npz", **arrays)
    folder = released.write(tmp_path / "hub", arrays, ABOUT["config"])
    (folder / "model.safetensors").unlink()
    np.savez(folder / "model.npz", **arrays)
    model = zoo.from_checkpoint(folder)
    kernel = model.image_encoder.get_layer("head").mean_map.kernel
    np.testing.assert_array_equal(kernel, arrays["visual.proj"])


def test_npz_with_objects_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "model.npz", weight=np.array([Code()], dtype=object))
    with pytest.raises(InputError, match=r"'weight' cannot be read: .*holds Python"):
        WeightArrays(tmp_path / "model.npz", "weights").get("weight")
    assert not (tmp_path / "ran").exists()


class Code:
    def __reduce__(self):
        return open, ("ran", "w")


def test_pth_without_torch_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pcme_coco.pth").write_bytes(pickle.dumps({"model": Code()}))
    with pytest.raises(MissingPackageError, match=r"torch is not installed: pip install"):
        zoo.from_checkpoint(tmp_path / "pcme_coco.pth")
    assert not (tmp_path / "ran").exists()


def fake_torch(monkeypatch, load, version="2.8.0+cpu"):
    """A torch whose `load` is given, to see what it is asked."""
    torch = types.ModuleType("torch")
    torch.__version__, torch.load = version, load
    torch.serialization = types.SimpleNamespace(safe_globals=lambda names: Allowed(names))
    torch.is_tensor = lambda value: isinstance(value, np.ndarray)
    monkeypatch.setitem(sys.modules, "torch", torch)


class Allowed:
    def __init__(self, names):
        self.names = names

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def test_torch_is_asked_for_weights_alone(tmp_path, monkeypatch):
    asked = {}

    def load(path, **options):
        asked.update(options)
        raise pickle.UnpicklingError("Weights only load failed. GLOBAL builtins.open")

    fake_torch(monkeypatch, load)
    (tmp_path / "model.pth").write_bytes(b"")
    with pytest.raises(InputError, match=r"code in it is not run: Weights only load failed"):
        WeightArrays(tmp_path / "model.pth", "weights")
    assert asked["weights_only"] is True


def test_an_old_torch_is_refused(tmp_path, monkeypatch):
    fake_torch(monkeypatch, None, "2.5.1")
    (tmp_path / "model.pth").write_bytes(b"")
    with pytest.raises(InputError, match=r"needs torch 2.6 or newer.* found 2.5.1"):
        WeightArrays(tmp_path / "model.pth", "weights")


def test_states_of_torch_are_read_by_their_parts(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is in no locked environment")
    import argparse

    state = {
        "model": [{"module.fc.weight": torch.ones(2, 3)}, {"embed.weight": torch.zeros(4)}],
        "criterion": {"shift": torch.tensor(3.0)},
        "opt": argparse.Namespace(margin=0.2),
        "best_rsum": np.float64(400.0),
        "word2idx": {"a": 4},
    }
    torch.save(state, tmp_path / "model.pth")
    arrays = WeightArrays(tmp_path / "model.pth", "weights")
    assert set(arrays) == {"img_enc.fc.weight", "txt_enc.embed.weight", "criterion.shift"}
    assert arrays.shape("img_enc.fc.weight") == (2, 3)
    assert arrays.extra["word2idx"] == {"a": 4}
    assert arrays.scalar("criterion.shift") == 3.0


def test_code_in_a_state_of_torch_is_refused(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is in no locked environment")
    monkeypatch.chdir(tmp_path)
    torch.save({"model": {"weight": torch.ones(2)}, "more": Code()}, tmp_path / "model.pth")
    with pytest.raises(InputError, match="code in it is not run"):
        zoo.from_checkpoint(tmp_path / "model.pth")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_a_large_file_is_read_array_by_array(tmp_path, suffix):
    each = np.ones((2048, 4096), "float32")  # 32 MiB, of which there are eight
    many = {f"array_{number}": each for number in range(8)}
    path = tmp_path / f"model.{suffix}"
    save_file(many, path) if suffix == "safetensors" else np.savez(path, **many)
    before, held = memory.held("RssAnon"), 0
    arrays = WeightArrays(path, "weights")
    for name in arrays:
        one = arrays.get(name)
        held = max(held, memory.held("RssAnon") - before)
        assert one[0, 0] == 1
    assert held < 2.5 * each.nbytes
