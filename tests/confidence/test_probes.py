"""Probes: held-out pairs that travel in one file, and what each brings."""

import numpy as np
import pytest

from probe_world import world
from zoo.confidence import Probes, calibrate_on
from zoo.errors import InputError
from zoo.evaluation.probes import whole_images
from zoo.search import Index


def test_images_that_ask_bring_all_their_captions(tmp_path):
    """Of images with five captions each, probes that keep two of them say too little."""
    rng = np.random.default_rng(3)
    images = rng.normal(size=(700, 16))
    owners = np.repeat(np.arange(700), 5)
    captions = images[owners] + 1.2 * rng.normal(size=(3500, 16))
    there, asked = owners < 200, np.arange(200)
    index = Index.build(captions[there], "cosine", side="captions")
    right = np.mean(owners[index.search(images[asked], 1)[1][:, 0]] == asked)
    told = np.flatnonzero(~there)
    some = np.sort(rng.permutation(told)[:1000])
    whole = whole_images(owners, np.arange(200, 700), 600, rng)
    assert len(whole) == 120
    first = told[np.isin(owners[told], whole)]
    kept = np.sort(np.concatenate([first, rng.permutation(np.setdiff1d(told, first))[:400]]))
    said = []
    for rows, marked in ((some, None), (kept, np.isin(np.arange(200, 700), whole))):
        labels = np.arange(200, 700)
        probes = Probes.of(
            images[200:], captions[rows], labels, owners[rows], owners[rows] - 200, whole=marked
        )
        assert not probes.by_class
        probes.save(tmp_path / "probes.npz")
        confidence = Probes.load(tmp_path / "probes.npz").calibrate(index)
        said.append(index.probability(images[asked], confidence).mean())
    assert abs(said[1] - right) <= 0.06
    assert right - said[0] >= 0.05
    assert whole_images(owners, np.arange(200, 210), 600, rng) is None


def test_probes_travel_in_one_file(tmp_path):
    own, queries = world(1, 800)
    labels = np.arange(800)
    made = Probes.of({"mean": own}, {"mean": queries}, labels, labels, labels, source="a test")
    made.save(tmp_path / "probes.npz")
    again = Probes.load(tmp_path / "probes.npz")
    assert again.source == "a test"
    assert not again.by_class
    index = Index.build(world(2, 300)[0], "cosine")
    first, second = (one.calibrate(index) for one in (made, again))
    np.testing.assert_array_equal(first.logistic.weights, second.logistic.weights)
    expected = calibrate_on(index, queries, own).first_k(0.1)
    assert first.first_k(0.1) == pytest.approx(expected, abs=3)
    assert len(again.take(np.arange(5), np.arange(4)).caption_labels) == 4
    rows = {"elements": own[:, None, :4], "mask": np.ones((800, 1), bool)}
    Probes.of(rows, rows, labels, labels, labels).save(tmp_path / "sets.npz")
    kept = Probes.load(tmp_path / "sets.npz").images
    assert (kept["elements"].dtype, kept["mask"].dtype) == (np.float16, bool)
    with pytest.raises(ValueError, match="`direction` must be one of"):
        made.pairs("up")
    (tmp_path / "probes.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"probes\.npz: (holds no probes|cannot be read)"):
        Probes.load(tmp_path / "probes.npz")
    with pytest.raises(InputError, match="no such file"):
        Probes.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="must have labels in common"):
        Probes.of({"mean": own}, {"mean": queries}, labels, labels + 800)
    with pytest.raises(ValueError, match="`image_labels` must be of shape"):
        Probes.of({"mean": own}, {"mean": queries}, labels[1:], labels)
