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
from halo_search.errors import InputError, MissingPackageError
from zoo.encoders.weight_arrays import WeightArrays

ABOUT, SHAPES, _ = released.described("prolip_tiny")


@pytest.fixture
def arrays():
    return released.weights(SHAPES)


def load(tmp_path, arrays):
    return zoo.from_checkpoint(released.write(tmp_path / "hub", arrays, ABOUT["config"]))


@pytest.mark.parametrize("keep", [0, -4])
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
    with pytest.raises(InputError, match=f"{name}: cannot be read"):
        zoo.from_checkpoint(tmp_path / name)


def _without_norms(arrays):
    for name in ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"):
        del arrays[f"text.transformer.resblocks.1.{name}"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without_norms, r"4 arrays of ProLIP are missing: '.*ln_1.weight', .*ln_2.weight' …"),
        (
            lambda arrays: arrays.update({f"visual.extra_{i}": np.ones(2) for i in range(5)}),
            "5 arrays have no place in ProLIP: .*'visual.extra_2' …",
        ),
        (
            lambda arrays: arrays.update({"text.ln_final.weight": np.ones(31, "float32")}),
            r"'text.ln_final.weight' should have the shape \(32,\) in Keras' layout; it has \(31,",
        ),
        (
            lambda arrays: arrays.update({"text.ln_final.weight": np.ones((32, 1, 1), "float32")}),
            r"'text.ln_final.weight' should have the shape \(32,\).*; it has \(32, 1, 1\)",
        ),
        (
            lambda arrays: arrays.update({"text.token_embedding.weight": np.ones(7, "float32")}),
            "arrays of no prolip network",
        ),
        (
            lambda arrays: arrays["visual.proj"].fill(np.nan),
            "'visual.proj' has NaN or infinite values",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path, arrays, change, says):
    change(arrays)
    with pytest.raises(InputError, match=says):
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


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_widened(tmp_path, arrays, dtype):
    half = {name: array.astype(dtype) for name, array in arrays.items()}
    model = load(tmp_path, half)
    kernel = model.image_encoder.get_layer("head").mean_map.kernel
    assert kernel.dtype == "float32"
    np.testing.assert_array_equal(kernel, half["visual.proj"].astype("float32"))


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


def test_a_large_file_is_read_array_by_array(tmp_path):
    each = np.ones((2048, 4096), "float32")  # 32 MiB, of which there are eight
    many = {f"array_{number}": each for number in range(8)}
    path = tmp_path / "model.safetensors"
    save_file(many, path)
    before, held = memory.held("RssAnon"), 0
    arrays = WeightArrays(path, "weights")
    for name in arrays:
        one = arrays.get(name)
        held = max(held, memory.held("RssAnon") - before)
        assert one[0, 0] == 1
    assert held < 2.5 * each.nbytes
