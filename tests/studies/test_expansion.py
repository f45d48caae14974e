"""Queries and items that are moved towards their neighbours."""

import dataclasses
import json

import numpy as np
import pytest

from studies import expansion as study
from studies import publishing, query_expansion
from studies.query_expansion import augment_gallery, expand_queries
from studies.together import together
from zoo.data.records import Records
from zoo.errors import InputError
from zoo.evaluation import EncodedSplit
from zoo.similarities import Cosine

RNG = np.random.default_rng(0)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def by_loops(queries, gallery, neighbours, weight):
    """What the docstring says, one query at a time."""
    moved = []
    for query in queries:
        cosines = [item @ query / np.linalg.norm(item) / np.linalg.norm(query) for item in gallery]
        best = sorted(range(len(gallery)), key=lambda row: -cosines[row])[:neighbours]
        towards = unit(np.mean([unit(gallery[row]) for row in best], axis=0))
        length = np.linalg.norm(query)
        moved.append(length * unit((1 - weight) * query / length + weight * towards))
    return np.array(moved)


@pytest.mark.parametrize(("neighbours", "weight"), [(1, 0.3), (4, 0.5), (30, 1.0), (7, 0.0)])
def test_it_is_the_mean_of_the_nearest(neighbours, weight, monkeypatch):
    queries, gallery = RNG.normal(size=(11, 6)), RNG.normal(size=(30, 6))
    expected = by_loops(queries, gallery, neighbours, weight)
    found = expand_queries(queries, {"mean": gallery}, neighbours, weight)["mean"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    monkeypatch.setattr(query_expansion, "_BLOCK", 90)  # of three queries, and of two in the end
    blocks = expand_queries(queries, {"mean": gallery}, neighbours, weight)["mean"]
    np.testing.assert_allclose(blocks, expected, atol=1e-5)
    augmented = augment_gallery(gallery, neighbours, weight)["mean"]
    np.testing.assert_allclose(augmented, by_loops(gallery, gallery, neighbours, weight), atol=1e-5)


def test_lengths_and_variances_stay():
    gaussians = {"mean": RNG.normal(size=(30, 6)), "log_variance": RNG.normal(size=(30, 6))}
    found = augment_gallery(gaussians)
    lengths = [np.linalg.norm(one["mean"], axis=1) for one in (found, gaussians)]
    np.testing.assert_allclose(*lengths, rtol=1e-5)
    np.testing.assert_allclose(found["log_variance"], gaussians["log_variance"], rtol=1e-6)
    assert np.abs(found["mean"] - gaussians["mean"]).max() > 0.1


@pytest.fixture(scope="module")
def encoded():
    """Noisy views of 8 classes, 10 images and 20 captions of each; a gap between the sides."""
    centres = RNG.normal(size=(8, 16))
    labels = [np.repeat(np.arange(8), count) for count in (10, 20)]
    sides = [centres[one] + 1.5 * RNG.normal(size=(len(one), 16)) for one in labels]
    names = [f"class {label}" for label in range(8)]
    records = Records(
        "made up test",
        np.array([f"{row}.jpg" for row in range(80)]),
        ["a bird"] * 160,
        np.arange(160) // 2,
        labels[0],
        np.arange(80),
        class_names=names,
    )
    return EncodedSplit(records, *({"mean": unit(side + 0.5)} for side in sides))


def test_retrieval_by_class_is_better_where_neighbours_are_of_the_class(encoded):
    found = study.expansion_study(encoded, Cosine(), neighbours=8)
    assert set(found) == set(study.WAYS)
    for direction in ("i2t", "t2i"):
        for way in ("gallery", "queries", "both"):
            key = f"{direction}_r_precision"
            assert found[way][key] > found["plain"][key] + 1
    augmented = augment_gallery(encoded.images, 8)
    moved = expand_queries(encoded.captions, augmented, 8)
    alone = expand_queries({"mean": encoded.captions["mean"][:1]}, augmented, 8)
    np.testing.assert_allclose(alone["mean"], moved["mean"][:1], atol=1e-6)  # each query by itself


def test_the_command_prints_and_keeps_the_table(encoded, tmp_path, monkeypatch, capsys):
    class Model:
        similarity = Cosine()

    split = type("Split", (), {"records": encoded.records, "source": None})
    monkeypatch.setattr(study, "open_run", lambda *_: (Model, split))
    monkeypatch.setattr(publishing, "data_of", lambda name: {})
    monkeypatch.setattr(study, "encode", lambda *_: encoded)
    out = tmp_path / "out"
    study.main(["one", "two", f"--out={out}", "--neighbours=8"])
    table = (out / "expansion.md").read_text()
    assert table in capsys.readouterr().out
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [
        f"| {title}" for title in study.WAYS.values()
    ]
    kept = json.loads((out / "expansion.json").read_text())
    plain = kept["all"]["plain"]["i2t_r_precision"]
    assert plain["runs"] == 2
    assert plain["deviation"] == 0
    assert f"{plain['mean']:.1f} ± 0.0 / " in table
    study.main(["one", "two", "--together", f"--out={out}", "--neighbours=8"])
    one = json.loads((out / "expansion.json").read_text())["runs"]
    assert list(one) == ["one and two"]  # two times the same, so the cosines are the same
    assert one["one and two"]["both"] == pytest.approx(kept["runs"]["one"]["both"])
    with pytest.raises(InputError, match="--ranking must not be given with --together"):
        study.main(["one", "--together", "--ranking=cosine"])


def test_models_side_by_side_rank_by_their_mean_cosine(encoded):
    other = EncodedSplit(
        encoded.records,
        *(
            {"mean": 3 * RNG.normal(size=(len(side["mean"]), 5))}
            for side in (encoded.images, encoded.captions)
        ),
    )
    both = together([encoded, other])
    cosines = [
        np.asarray(Cosine(scale=1.0)(one.images, one.captions)) for one in (encoded, other, both)
    ]
    np.testing.assert_allclose(cosines[2], (cosines[0] + cosines[1]) / 2, atol=1e-6)
    fewer = dataclasses.replace(encoded.records, image_ids=encoded.records.image_ids + 1)
    with pytest.raises(ValueError, match="of the same images and captions"):
        together([encoded, EncodedSplit(fewer, encoded.images, encoded.captions)])
    sets = {"elements": np.ones((80, 2, 4))}, {"elements": np.ones((160, 2, 4))}
    with pytest.raises(ValueError, match="one mean an item; received a set"):
        together([EncodedSplit(encoded.records, *sets)])
    with pytest.raises(ValueError, match="at least one"):
        together([])


@pytest.mark.parametrize(
    ("queries", "options", "said"),
    [
        ({"elements": np.ones((2, 3, 6))}, {}, "`queries` must have one mean an item"),
        (np.full((2, 6), np.nan), {}, "`queries` must hold finite numbers"),
        (np.ones((2, 5)), {}, "`queries` must have the gallery's dimension, 6; received 5"),
        (np.ones((2, 6)), {"neighbours": 31}, "`neighbours` must be from 1 to the gallery's size"),
        (np.ones((2, 6)), {"neighbours": 0}, "received 0"),
        (np.ones((2, 6)), {"weight": 1.5}, r"`weight` must be in \[0, 1\]; received 1.5"),
    ],
)
def test_what_cannot_be_is_said(queries, options, said):
    with pytest.raises(ValueError, match=said):
        expand_queries(queries, np.ones((30, 6)), **options)
