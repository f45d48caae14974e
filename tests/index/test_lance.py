"""Galleries on the disk, searched by LanceDB: what they say is what an index in memory says."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import colour_gaussians
from halo_search.cli.search import main
from halo_search.confidence import calibrate_on
from halo_search.embeddings.arrays import take
from halo_search.errors import InputError
from halo_search.files.written import read_sealed, sealed
from halo_search.index import Index
from zoo import similarities as S

pytest.importorskip("lancedb", reason='pip install ".[large]"')

from halo_search.index import lance_vectors
from halo_search.index.lance import LanceIndex

SIMILARITIES = {
    "cosine": "cosine",
    "csd": S.ClosedFormSampledDistance(scale=3.0, shift=1.0),
    "l2": "squared_euclidean",
    "w2": S.Wasserstein2(),  # a root: no line in what is compared
}


@pytest.fixture
def make(gaussians):
    """`make(name, items)`: what a similarity takes."""

    def of(name, items):
        found = gaussians(items)
        return {"mean": found["mean"]} if name in ("cosine", "l2") else found

    return of


def near(rng, items, away=0.8):
    noise = away * rng.normal(size=items["mean"].shape)
    return {**items, "mean": (items["mean"] + noise).astype("float32")}


@pytest.mark.parametrize("hubs", [False, True])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_it_answers_as_an_index(name, hubs, make, rng, tmp_path):
    """Order, ties, scores, moments and probabilities, with copies and in two parts."""
    if hubs and name == "w2":
        pytest.skip("a distance with a root has no corrected hubs")
    gallery, own, bank = make(name, 700), make(name, 300), make(name, 150)
    gallery = {part: np.concatenate([x, x[:40]]) for part, x in gallery.items()}
    queries, similarity = near(rng, own), SIMILARITIES[name]
    index = Index.build(gallery, similarity, hubs=bank if hubs else None)
    parts = iter([take(gallery, slice(0, 500)), take(gallery, slice(500, None))])
    large = LanceIndex.build(tmp_path / "large", parts, similarity, hubs=index.hubs)
    for k in (1, 20, 50):
        scores, ids = index.search(queries, k)
        found, there = large.search(queries, k)
        np.testing.assert_array_equal(there, ids)
        np.testing.assert_allclose(found, scores, rtol=2e-5, atol=2e-5)
        assert (found.dtype, there.dtype) == (scores.dtype, ids.dtype)
    told, expected = large.query_scores(queries), index.query_scores(queries)
    np.testing.assert_allclose(told.mean, expected.mean, rtol=1e-6)
    np.testing.assert_allclose(told.variance, expected.variance, rtol=1e-6)
    np.testing.assert_allclose(told.agreement, expected.agreement, atol=1e-5)
    of_large, of_index = (calibrate_on(one, queries, own) for one in (large, index))
    asked = take(queries, slice(0, 60))
    np.testing.assert_allclose(
        large.probability(asked, of_large), index.probability(asked, of_index), atol=2e-5
    )
    loaded = LanceIndex.load(tmp_path / "large")
    np.testing.assert_array_equal(loaded.search(queries, 20)[1], index.search(queries, 20)[1])
    np.testing.assert_allclose(loaded.vector_sample(9), index.vector_sample(9), rtol=1e-6)


def test_more_copies_than_are_found_to_spare(make, tmp_path):
    """Thirty items of one vector: the least ids come first, however few are asked for."""
    items = make("cosine", 90)
    items["mean"][:30] = items["mean"][0]
    ids = np.random.default_rng(1).permutation(1000)[:90]
    large = LanceIndex.build(tmp_path / "large", items, "cosine", ids=ids)
    asked = take(items, slice(0, 1))
    for k in (1, 4, 30):
        np.testing.assert_array_equal(large.search(asked, k)[1][0], np.sort(ids[:30])[:k])


def test_adding_and_removing(make, tmp_path):
    gallery, more, queries = make("csd", 300), make("csd", 50), make("csd", 20)
    large, index = LanceIndex.build(tmp_path / "a", gallery, "csd"), Index.build(gallery, "csd")
    for one in (large, index):
        assert one.add(take(more, slice(0, 30))).tolist() == list(range(300, 330))
        one.remove([3, 17, 310])
        one.add(take(more, slice(30, 50)), ids=[3, *range(5000, 5019)])
        assert len(one) == 347
    np.testing.assert_array_equal(large.search(queries, 15)[1], index.search(queries, 15)[1])
    np.testing.assert_allclose(large.moments.mean, index.moments.mean, rtol=1e-5)
    assert len(LanceIndex.load(tmp_path / "a")) == 300, "nothing was saved since"
    large.save(tmp_path / "b")  # where it goes on
    large.add(take(more, slice(0, 5)))
    assert len(LanceIndex.load(tmp_path / "a")) == 300
    loaded = LanceIndex.load(tmp_path / "b")
    np.testing.assert_array_equal(loaded.search(queries, 15)[1], index.search(queries, 15)[1])
    with pytest.raises(InputError, match="another process changes this index"):
        loaded.add(take(more, slice(0, 2)))
    del large  # whose changes nobody saved
    assert loaded.add(take(more, slice(0, 2))).tolist() == [5019, 5020]
    loaded.save(tmp_path / "b")
    assert len(LanceIndex.load(tmp_path / "b")) == 349
    assert len(list((tmp_path / "b").glob("moments-*.npz"))) == 1


def test_a_move_that_fails_leaves_it_where_it_was(make, tmp_path, monkeypatch):
    gallery, more, queries = make("csd", 60), make("csd", 9), make("csd", 5)
    large = LanceIndex.build(tmp_path / "a", gallery, "csd")
    large.add(more)
    expected = large.search(queries, 7)[1]

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for name in ("write_file", "shutil.copytree"):
        with monkeypatch.context() as patch:
            patch.setattr(f"halo_search.index.lance_store.{name}", full)
            with pytest.raises(InputError, match="b: cannot write the index: No space left"):
                large.save(tmp_path / "b")
        assert {*os.listdir(tmp_path / "b")} - {".lock"} == {"index.json"}
    with pytest.raises(KeyError), large.saving(tmp_path / "b"):
        raise KeyError  # of who writes beside it
    np.testing.assert_array_equal(large.search(queries, 7)[1], expected)
    with pytest.raises(InputError, match="another process changes this index"):
        LanceIndex.load(tmp_path / "a").remove([1])  # which has changes that are not saved
    large.save(tmp_path / "a")
    assert len(LanceIndex.load(tmp_path / "a")) == 69
    LanceIndex.load(tmp_path / "a").remove([1])


def test_a_part_is_searched_by_a_condition(make, tmp_path):
    gallery, queries = make("csd", 400), make("csd", 10)
    years = np.arange(400) % 7
    large = LanceIndex.build(tmp_path / "large", gallery, "csd", columns={"year": years})
    part = np.flatnonzero(years == 3)
    expected = Index.build(take(gallery, part), "csd", ids=part).search(queries, 12)
    found = large.search(queries, 12, where="year = 3")
    np.testing.assert_array_equal(found[1], expected[1])
    scores, ids = large.search(queries, 5, where="id < 2")
    assert (ids[:, :2] >= 0).all()
    assert (ids[:, 2:] == -1).all()
    np.testing.assert_array_equal(np.isnan(scores), ids < 0)
    with pytest.raises(ValueError, match="`where` 'colour = 3'"):
        large.search(queries, 5, where="colour = 3")
    with pytest.raises(ValueError, match="`columns` must be 5 values of each"):
        large.add(take(gallery, slice(0, 5)))


def test_a_trained_index_finds_nearly_all(make, tmp_path, monkeypatch):
    """Of the width that LanceDB would code as one piece, and with new items beside it."""
    monkeypatch.setattr(lance_vectors, "FEW", 1000)
    gallery, queries = make("csd", 6000), make("csd", 50)
    large = LanceIndex.build(tmp_path / "large", take(gallery, slice(0, 5000)), "csd")
    (one,) = (one for one in large.table.list_indices() if one.columns == ["vector"])
    assert one.index_type == "IvfPq"
    large.add(take(gallery, slice(5000, None)))
    large.save(tmp_path / "large")
    truth = Index.build(gallery, "csd").search(queries, 10)[1]
    for index in (large, LanceIndex.load(tmp_path / "large")):
        found = index.search(queries, 10)[1]
        hits = [np.isin(true, own).mean() for true, own in zip(truth, found, strict=True)]
        assert np.mean(hits) >= 0.95
    assert large.search(queries, 5, where="id >= 5990")[1].min() >= 5990


def test_what_does_not_fit_is_refused(make, sets, tmp_path):
    gallery, queries = make("csd", 60), make("csd", 3)
    large = LanceIndex.build(tmp_path / "large", gallery, "csd")
    narrow = {name: values[:, :5] for name, values in queries.items()}
    overflow = {**queries, "log_variance": queries["log_variance"] + 200}
    for message, call in {
        "dimension 24; received 5": lambda: large.search(narrow, 3),
        "have dimension 24": lambda: large.add(narrow),
        "already has 3": lambda: large.add(queries, ids=[3, 70, 71]),
        "more than once": lambda: large.add(queries, ids=[70, 70, 71]),
        "one an item": lambda: large.add(queries, ids=[70]),
        "log variances of at most 69.1; item 0": lambda: large.add(overflow),
        "finite": lambda: large.search({**queries, "mean": queries["mean"] * np.nan}, 1),
        "lacks 99": lambda: large.remove([1, 99]),
        "from 1 to the index's size, 60": lambda: large.search(queries, 61),
        "lacks 77": lambda: large.answer_vectors(np.array([[1, 77]])),
        "needs no re-ranking": lambda: LanceIndex.build(tmp_path / "x", gallery, "kl"),
        "at least one item": lambda: LanceIndex.build(tmp_path / "x", iter([]), "cosine"),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    assert len(large) == large.table.count_rows() == 60
    assert large.moments.count == 60
    large.add(queries)  # as before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    for call in (
        lambda: LanceIndex.build(tmp_path / "mine", gallery, "csd"),
        lambda: large.save(tmp_path / "mine"),
    ):
        with pytest.raises(InputError, match=r"holds thesis\.tex, which this program"):
            call()
    assert os.listdir(tmp_path / "mine") == ["thesis.tex"]
    large.save(tmp_path / "large")
    stale = LanceIndex.load(tmp_path / "large")
    large.remove([1])
    large.save(tmp_path / "large")
    with pytest.raises(InputError, match="another process has saved this index since"):
        stale.remove([2])
    with pytest.raises(InputError, match="holds an index; choose another folder"):
        LanceIndex.build(tmp_path / "large", gallery, "csd")


def test_an_open_index_whose_files_are_gone_says_so(make, tmp_path):
    gallery = make("csd", 60)
    index = LanceIndex.build(tmp_path / "large", gallery, "csd")
    shutil.rmtree(tmp_path / "large")
    for read in (
        lambda: index.search(gallery, 3),
        lambda: index.answer_vectors(np.zeros((1, 1), int)),
    ):
        with pytest.raises(InputError, match="its files are gone or were replaced; load the index"):
            read()


def test_damage_is_named(make, tmp_path):
    gallery = make("csd", 60)
    LanceIndex.build(tmp_path / "large", gallery, "csd")
    path = tmp_path / "large" / "index.json"
    whole = path.read_text()
    with pytest.raises(InputError, match="built for the similarity csd, not for wasserstein_2"):
        LanceIndex.load(tmp_path / "large", S.Wasserstein2())
    with pytest.raises(InputError, match="LanceDB"):
        Index.load(tmp_path / "large")
    for change in ({"version": 9}, {"table_version": 77}, {"moments": "none.npz"}):
        path.write_text(json.dumps(sealed({**read_sealed(path, json.loads(whole)), **change})))
        with pytest.raises(InputError):
            LanceIndex.load(tmp_path / "large")
    path.write_text(whole)
    LanceIndex.load(tmp_path / "large").table.delete("id = 3")  # behind its back
    assert len(LanceIndex.load(tmp_path / "large")) == 60, "the saved state is read"


KILLED = """
import os, sys
import numpy as np
from halo_search.index import scoring
from halo_search.index.lance import LanceIndex
index = LanceIndex.load(sys.argv[1])
rng = np.random.default_rng(0)
while True:
    index.add({"mean": rng.normal(size=(3000, 24)).astype("float32")})
    print(len(index), flush=True)
"""


def test_a_process_that_is_killed_while_it_adds_loses_nothing(make, tmp_path):
    gallery, queries = make("cosine", 500), make("cosine", 9)
    expected = LanceIndex.build(tmp_path / "a", gallery, "cosine").search(queries, 20)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert int(child.stdout.readline()) == 3500
        child.send_signal(signal.SIGKILL)
    index = LanceIndex.load(tmp_path / "a")
    for found, own in zip(index.search(queries, 20), expected, strict=True):
        np.testing.assert_array_equal(found, own)
    index.add(take(gallery, slice(0, 7)))
    index.save(tmp_path / "a")
    assert len(LanceIndex.load(tmp_path / "a")) == 507


def test_the_command_builds_and_asks_it(tmp_path, capsys):
    folder, out, model = tmp_path / "photos", tmp_path / "out", tmp_path / "model"
    zoo.save_preset(colour_gaussians(["red", "green", "blue"], kernel="zeros"), model)
    folder.mkdir()
    for name, colour in {"a": (250, 0, 0), "b": (0, 250, 0), "c": (200, 0, 0)}.items():
        Image.new("RGB", (12, 10), colour).save(folder / f"{name}.png")
    main(["build", str(folder), str(out), "--model", str(model), "--engine", "lance"])
    main(["update", str(out)])
    capsys.readouterr()
    main(["query", str(out), "--image", str(folder / "a.png"), "-k", "2"])
    said = capsys.readouterr().out.strip().splitlines()
    assert [line.split()[-1] for line in said[-2:]] == ["a.png", "c.png"]
    retriever = zoo.Retriever.load(out)
    assert isinstance(retriever.index, LanceIndex)
    retriever.remove([0])
    retriever.save(out)
    assert len(zoo.Retriever.load(out)) == 2
    with pytest.raises(InputError, match="`candidates` must be None"):
        main(
            ["build", str(folder), str(out), f"--model={model}", "--engine=lance", "--candidates=3"]
        )


def test_a_fork_is_told(make, tmp_path, monkeypatch):
    index = LanceIndex.build(tmp_path / "a", make("cosine", 50), "cosine")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="does not survive a fork"):
        index.search(make("cosine", 1), 3)
