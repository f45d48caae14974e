"""A part of a gallery answers as a gallery of its items alone."""

import types

import numpy as np
import pytest

import zoo
from halo_search.confidence import Fits, Probes
from halo_search.embeddings.arrays import take
from halo_search.index import Index
from halo_search.index.columns import ids_among
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.names import ItemNames
from zoo import similarities as S

SIMILARITIES = {
    "cosine": S.Cosine(),
    "csd": S.ClosedFormSampledDistance(scale=3.0, shift=1.0),
    "smooth_chamfer": S.SmoothChamfer(),
}
PROBES = {"cosine": 300, "csd": 300, "smooth_chamfer": 120}  # sets take ten times as long
IDS = 3 * np.arange(400) + 5
SOME = np.random.default_rng(1).permutation(400)[:90]
ABOUT = {  # fits of a score: a, b
    "t2i": Fits(np.array([4.0, 1.0])),
    "corrected_t2i": Fits(np.array([2.0, 1.0])),
}


@pytest.fixture
def make(gaussians, sets):
    def of(name, items):
        if name == "smooth_chamfer":
            return sets(items)
        found = gaussians(items)
        return {"mean": found["mean"]} if name == "cosine" else found

    return of


def near(rng, items):
    noisy = {"mean": 0.4, "elements": 1.6}
    return {
        name: (x + noisy.get(name, 0) * rng.normal(size=x.shape)).astype("float32")
        for name, x in items.items()
    }


def retriever(index, probes):
    model = types.SimpleNamespace(similarity=index.similarity, reads_texts=False)
    return zoo.Retriever(GalleryModel(None, opened=model), index, probes)


@pytest.mark.parametrize(
    ("name", "hubs", "engine"),
    [
        *((name, hubs, "memory") for name in ("cosine", "csd") for hubs in (False, True)),
        ("smooth_chamfer", False, "memory"),
        ("csd", False, "lance"),
        ("csd", True, "lance"),
    ],
)
def test_a_part_answers_as_a_gallery_of_its_items(name, hubs, engine, make, rng, tmp_path):
    gallery, own, similarity = make(name, 400), make(name, PROBES[name]), SIMILARITIES[name]
    labels, asked = np.arange(PROBES[name]), near(rng, own)
    probes = Probes.of(own, asked, labels, labels, fits=ABOUT)
    more = {"hubs": probes.questions("images") if hubs else None}
    if engine == "lance":
        pytest.importorskip("lancedb", reason='pip install ".[large]"')
        from halo_search.index.lance import LanceIndex

        index = LanceIndex.build(tmp_path / "large", gallery, similarity, ids=IDS, **more)
    else:
        index = Index.build(gallery, similarity, ids=IDS, **more)
    whole, rows = retriever(index, probes), np.sort(SOME)
    alone = retriever(Index.build(take(gallery, rows), similarity, ids=IDS[rows], **more), probes)
    questions = [take(near(rng, gallery), slice(row, row + 1)) for row in SOME[:20]]
    answers, expected = whole.ask(questions, 30, IDS[SOME]), alone.ask(questions, 30)
    for one, other in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        for said in ("scores", "fits", "wanted", "number", "interval"):
            found, wanted = (np.array(getattr(x, said), float) for x in (one, other))
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6, err_msg=said)
        assert (one.verdict, one.reason) == (other.verdict, other.reason)
        assert one.first_k(0.2) == other.first_k(0.2)
    page = whole.all(questions[0], least=0.2, among=IDS[SOME])
    assert page.total == alone.all(questions[0], least=0.2).total > 0
    assert whole.part(IDS[SOME]) is whole.part(IDS[SOME][::-1].tolist())
    assert len(whole.ask(questions[0], 300).ids) == 300 > len(SOME)


def test_a_part_is_of_the_gallery_as_it_is(make, rng):
    gallery = make("cosine", 400)
    probes = Probes.of(take(gallery, SOME), near(rng, take(gallery, SOME)), SOME, SOME)
    whole = retriever(Index.build(gallery, "cosine", ids=IDS), probes)
    whole._names = ItemNames({item: f"{item % 4}/{item}.jpg" for item in IDS.tolist()})
    assert whole.part("2/*").index.ids.tolist() == [one for one in IDS.tolist() if one % 4 == 2]
    assert whole.part(["1/5.jpg", "8"]).index.ids.tolist() == [5, 8]
    assert whole.part(["1/5.jpg", "8"]).names_of(np.array([5])) == ["1/5.jpg"]
    before = whole.part([5, 8, 11])
    whole.remove([11])
    whole.add(take(gallery, slice(0, 1)), ids=[11], names=["new.jpg"])
    assert whole.part([5, 8, 11]) is not before
    for among, says in {
        (): "must name at least one item; received none",
        (5, 6): "must be in the index; it lacks 6",
        (5, 8, 5): "must be distinct; received 5 more than once",
        (5.5,): "must be whole numbers, one or a list; received .* float64",
        ("1/5.jpg", "x.jpg"): "must be names or ids of items; 'x.jpg' is none",
        ("1/5.jpg", "1/5.jpg"): "must be distinct; received '1/5.jpg' twice",
        "9/*": "must be a pattern of names; '9/\\*' fits none",
    }.items():
        with pytest.raises(ValueError, match=f"`among` {says}"):
            whole.ask(take(gallery, slice(0, 1)), 3, among)
    whole._names = ItemNames()
    with pytest.raises(ValueError, match="the items have no names; received '2/"):
        whole.part("2/*")


NFC, NFD = "caf\u00e9.jpg", "cafe\u0301.jpg"


@pytest.mark.parametrize(("there", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_names_with_accents_are_found_however_they_are_written(there, asked):
    names = {7: there, 8: "b.jpg"}
    assert ids_among([asked], names) == [7]
    assert ids_among(["b.jpg", asked], names) == [8, 7]
    assert ids_among(asked.replace("jpg", "*"), names) == [7]
    assert ids_among([asked], {**names, 9: asked}) == [9], "both are there"
    with pytest.raises(ValueError, match="is none"):
        ids_among(["cafe.jpg"], names)
