"""What `python -m export` writes, and what it refuses to write."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tensorflow_serving.apis import prediction_log_pb2

import forked
import tiny_models
from export import __main__ as command
from export import export_model, requests, saved_model
from export.stored_weights import StoredWeights
from halo_search.errors import InputError
from zoo.models.run_folder import RunFolder


@pytest.fixture(scope="module")
def run_folder(pcme, tmp_path_factory):
    run = RunFolder.open(tmp_path_factory.mktemp("run") / "pcme", {"data_dir": "CUB"})
    run.save_model(pcme.model)
    run.finish({"retrieval": {"t2i_recall@1": 12.5}})
    return run


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_folder_is_what_the_server_reads(pcme):
    found = files(pcme.out)
    assert {"models.config", "monitoring.config", "compose.yaml", "1/saved_model.pb"} <= set(found)
    assert 'base_path: "/models/halo"' in (pcme.out / "models.config").read_text()
    compose = (pcme.out / "compose.yaml").read_text()
    for flag, name in re.findall(r"--(\w+)=/models/halo/(\S+)", compose):
        assert (pcme.out / name).is_file(), flag
    batching = (pcme.folder / "batching_params.pbtxt").read_text()
    (largest,) = re.findall(r"max_batch_size { value: (\d+) }", batching)
    sizes = [int(size) for size in re.findall(r"allowed_batch_sizes: (\d+)", batching)]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == int(largest)


def test_warm_up_records_run_on_the_export(pcme):
    path = pcme.folder / "assets.extra" / "tf_serving_warmup_requests"
    signatures = (model := tf.saved_model.load(str(pcme.folder))).signatures
    warmed = set()
    for record in tf.data.TFRecordDataset([str(path)]).as_numpy_iterator():
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        assert request.model_spec.name == "halo"
        name = request.model_spec.signature_name
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        outputs = signatures[name](**{key: tf.constant(v) for key, v in inputs.items()})
        # A server that merges requests refuses `match` as a whole, and a failing record stops it.
        assert list(request.output_filter) == (["similarity", "pairs"] if name == "match" else [])
        assert set(request.output_filter) <= set(outputs)
        assert all(np.isfinite(value).all() for value in outputs.values())
        warmed.add(name)
    assert warmed == set(signatures)
    assert signatures["match"].structured_outputs["pairs"].shape.rank == 0
    del model


def test_a_version_is_never_overwritten(pcme):
    before = {name: (pcme.out / name).stat().st_mtime_ns for name in files(pcme.out)}
    with pytest.raises(InputError, match="exists already"):
        export_model(pcme.model, pcme.out)
    assert {name: (pcme.out / name).stat().st_mtime_ns for name in files(pcme.out)} == before


def test_another_folder_is_left_alone(pcme, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="found something else"):
        export_model(pcme.model, tmp_path)
    assert files(tmp_path) == ["mine.txt"]


def test_an_export_that_fails_leaves_nothing(pcme, tmp_path, monkeypatch):
    def wrong(folder, *_):
        assert (folder / "saved_model.pb").is_file()
        return {"encode_images/mean": 0.1}

    monkeypatch.setattr(saved_model, "compare", wrong)
    with pytest.raises(RuntimeError, match="differs from its Keras model"):
        export_model(pcme.model, tmp_path / "out", version=2, image_only=True, index=False)
    assert not list(tmp_path.iterdir())


FULL_DISK = """
import sys
import resource
import signal
import zoo
from export.__main__ import main
from zoo.cli import run

def limited(path, *arguments):
    model = zoo.from_preset(path)
    zoo.from_preset = lambda name: model
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    main([path, *arguments])

run(limited, *sys.argv[1:])
"""


@pytest.mark.very_slow
def test_a_full_disk_is_one_sentence_and_leaves_nothing(run_folder, tmp_path):
    # A limit on the size of a file stands for the full disk.
    out = tmp_path / "old"
    out.mkdir()
    (out / "models.config").write_text("")
    before = sorted(tmp_path.rglob("*"))
    done = forked.run(FULL_DISK, run_folder.path, out, "--version=2", "--image-only", "--no-index")
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert line.startswith(f"error: {out}: cannot be written: ")
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": 0}, "version"),
        ({"batch_size": 0}, "batch_size"),
        ({"storage": "int4"}, "storage"),
        ({"image_size": 31}, "images of"),
    ],
)
def test_bad_options(pcme, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        export_model(pcme.model, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command(run_folder, tmp_path, capsys):
    out = tmp_path / "served"
    flags = ["--image-only", "--no-index", "--batch-size=3", "--storage=float16", "--version=7"]
    command.main([str(run_folder.path), str(out), *flags])
    assert "docker compose up" in capsys.readouterr().out
    facts = json.loads((out / "7" / "export.json").read_text())
    assert set(facts["signatures"]) == {"serving_default", "encode_images", "encode_pixels"}
    assert facts["signatures"]["encode_images"]["inputs"]["images"]["shape"] == [3]
    assert facts["loads_with"] == ["tensorflow"]
    assert 0 < facts["largest_errors"]["encode_images/mean"] < 1e-2  # as small weights have it
    card = (out / "7" / "model_card.md").read_text()
    assert "Trained on: CUB" in card
    assert "| `retrieval/t2i_recall@1` | 12.5 |" in card
    assert "allowed_batch_sizes: 3" in (out / "7" / "batching_params.pbtxt").read_text()


@pytest.mark.slow
def test_the_pages_program_runs(run_folder, tmp_path, monkeypatch, capsys):
    """The program of docs/serving.md."""
    page = Path(__file__).parents[2] / "docs" / "serving.md"
    monkeypatch.chdir(tmp_path)
    command.main([str(run_folder.path), "served"])
    Image.new("RGB", (60, 40), "green").save("bird.jpg")
    capsys.readouterr()
    code = "".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M))
    exec(compile(code, str(page), "exec"), {})
    assert "(1, 8) (1,)" in capsys.readouterr().out


def test_eight_bits_have_a_scale_for_every_channel(pcme):
    weights = [w for w in pcme.model.image_encoder.weights if w.ndim == 4]
    stored = StoredWeights(weights, "dynamic_range")
    assert any(variable.dtype == tf.int8 for variable in stored.stored)
    for weight, value in zip(weights, stored.values(), strict=True):
        step = np.abs(weight).max(axis=(0, 1, 2)) / 127
        assert (np.abs(value - weight) <= 0.5001 * step).all()


def test_a_weight_that_is_not_finite_is_not_exported(birds):
    model = tiny_models.tiny("pcme", birds.tokenizer)
    weight = max(model.image_encoder.trainable_weights, key=lambda one: np.prod(one.shape))
    weight.assign(np.full(weight.shape, 1e9, "float32"))
    with pytest.raises(InputError, match="does not fit in float16"):
        StoredWeights([weight], "float16")
    weight.assign(np.full(weight.shape, np.nan, "float32"))
    with pytest.raises(InputError, match="not finite"):
        StoredWeights([weight])


DECLARED = [
    ((None, 4, 3), [(1, 4, 3), (5, 4, 3)], [(1, 4, 4), (1, 5, 3), (4, 3), (1, 4, 3, 1), ()]),
    ((None,), [(1,), (3,)], [(), (1, 1), (2, 2)]),
    ((2, 3), [(2, 3)], [(1, 3), (2, 4), (2,), (2, 3, 1), (3, 2)]),  # all is known beforehand
]


@pytest.mark.parametrize(("shape", "right", "wrong"), DECLARED)
def test_other_shapes_are_refused(tmp_path, shape, right, wrong):
    spec = tf.TensorSpec(shape, tf.float32, name="values")
    module = tf.Module()
    module.double = tf.function(
        lambda values: {"doubled": 2 * requests.declared([values], [spec])[0]},
        input_signature=[spec],
        autograph=False,
    )
    signatures = {"double": module.double.get_concrete_function()}
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    served = tf.saved_model.load(str(tmp_path)).signatures["double"]
    for one in right:
        np.testing.assert_array_equal(served(values=tf.ones(one))["doubled"], np.full(one, 2.0))
    for one in wrong:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            served(values=tf.ones(one))
        said = ", ".join("N" if size is None else str(size) for size in shape)
        assert f"`values` must have shape ({said}" in str(caught.value)
        assert f"received] [{', '.join(map(str, one))}]" in str(caught.value)
