import json

import numpy as np
import pytest

import annotation_folder
from halo_search.cli.evaluate import main
from halo_search.errors import InputError
from zoo import similarities
from zoo.metrics import evaluate_retrieval

GAUSSIAN_NAMES = similarities.names(lambda cls: "a Gaussian" in cls.embeddings)


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(10, 4)).astype(np.float32)
    captions = np.repeat(images, 5, axis=0) + rng.normal(size=(50, 4)).astype(np.float32)
    return {
        "image_mean": images,
        "caption_mean": captions,
        "image_labels": np.arange(10),
        "caption_labels": np.repeat(np.arange(10), 5),
        "image_ids": annotation_folder.IMAGES,
        "caption_ids": annotation_folder.CAPTIONS,
    }


def save(path, arrays):
    np.savez(path / "embeddings.npz", **arrays)
    return str(path / "embeddings.npz")


def test_points_by_cosine(tmp_path, arrays, capsys):
    main([save(tmp_path, arrays), "--out", str(tmp_path / "metrics.json")])
    unit = {
        k: arrays[k] / np.linalg.norm(arrays[k], axis=1, keepdims=True)
        for k in ("image_mean", "caption_mean")
    }
    expected = evaluate_retrieval(
        unit["image_mean"] @ unit["caption_mean"].T,
        arrays["image_labels"][:, None] == arrays["caption_labels"],
    )
    written = json.loads((tmp_path / "metrics.json").read_text())
    assert written.pop("similarity") == "cosine"
    assert written == pytest.approx(expected)
    shown = capsys.readouterr().out
    assert f"{expected['rsum']:.2f}" in shown


def test_gaussians_by_the_similarity_that_is_asked_for(tmp_path, arrays):
    for side, size in (("image", 10), ("caption", 50)):
        arrays[f"{side}_log_variance"] = np.zeros((size, 4), np.float32)
    out = tmp_path / "metrics.json"
    path = save(tmp_path, arrays)
    for flags, name in (([], "csd"), *((["--similarity", name], name) for name in GAUSSIAN_NAMES)):
        main([path, "--out", str(out), *flags])
        results = json.loads(out.read_text())
        assert results["similarity"] == name
        assert 0 < results["rsum"] <= 600


def test_coco_table(tmp_path, arrays, capsys):
    annotation_folder.write(tmp_path)
    instances = annotation_folder.write_instances(tmp_path / "instances.json")
    main([save(tmp_path, arrays), "--coco", str(tmp_path), "--instances", str(instances)])
    shown = capsys.readouterr().out
    for key in ("coco_5k_rsum", "coco_1k_rsum", "eccv_i2t_map@r", "coco_5k_t2i_pmrp"):
        assert key in shown


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        (lambda a: a.pop("image_labels"), [], "lacks the array 'image_labels'"),
        (lambda a: a.update(image_labels=np.arange(9)), [], r"embeddings.npz.*\(9, 50\)"),
        (lambda a: None, ["--similarity", "hamming"], "cosine, .*received 'hamming'"),
        (lambda a: None, ["--similarity", "csd"], "csd takes a Gaussian; the file holds a point"),
        (lambda a: a["image_mean"].fill(np.nan), [], "NaN"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, arrays, change, flags, message):
    change(arrays)
    with pytest.raises(InputError, match=message):
        main([save(tmp_path, arrays), *flags])
