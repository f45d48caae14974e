"""Corrected hubs: the order of CSLS, exactly, in every kind of index, judged by honest probes."""

import dataclasses

import numpy as np
import pytest

import zoo
from halo_search.confidence import Probes
from halo_search.confidence.probes import OF_CORRECTED
from halo_search.embeddings.arrays import take
from halo_search.embeddings.csls import NEIGHBOURS
from halo_search.index import Index, scoring
from halo_search.retriever.hubs import Gain, hub_gain
from zoo.evaluation import probes_of
from zoo.similarities import ClosedFormSampledDistance, closed_form_sampled_distance

SIMILARITIES = ("csd", closed_form_sampled_distance, "cosine", "squared_euclidean")


def of_definition(similarity, items, queries, bank, left_out=None):
    """2 v − r(g), halved, in the similarity's scores, by every pair: `(queries, items)`."""
    numbers = scoring.resolve(similarity)
    if isinstance(similarity, str):
        similarity = zoo.similarities.get(similarity)  # which computes every pair
    values = np.asarray(similarity(items, queries), np.float64).T
    near = np.asarray(similarity(items, bank), np.float64)
    at_0, at_1 = numbers.scorer()(np.array([0.0, 1.0]))
    near -= at_0
    if "log_variance" in bank and numbers.space == "csd":
        # The questions' own variances are no part of what is compared.
        near -= (at_1 - at_0) * np.exp(np.float64(bank["log_variance"])).sum(axis=1)
    sign = scoring.sign(numbers)
    near = sign * near if left_out is None else np.where(left_out, -np.inf, sign * near)
    return values - sign * np.sort(near, axis=1)[:, -NEIGHBOURS:].mean(axis=1) / 2


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_order_and_the_scores_are_those_of_the_definition(similarity, gaussians):
    items, queries, bank = gaussians(300), gaussians(40), gaussians(150)
    index = Index.build(items, similarity, hubs=bank)
    expected = of_definition(similarity, items, queries, bank)
    scores, ids = index.search(queries, 300)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, 1), rtol=1e-4, atol=1e-4)
    plain = Index.build(items, similarity).search(queries, 300)[1]
    assert (ids[:, 0] != plain[:, 0]).mean() > 0.1  # or nothing was corrected
    told = index.query_scores(queries)
    sign = scoring.sign(index.similarity)
    np.testing.assert_allclose(told.mean, sign * expected.mean(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(told.variance, expected.var(axis=1), rtol=1e-3)


def test_growth_removal_and_the_disk_keep_the_correction(gaussians, tmp_path):
    items, more, queries, bank = gaussians(400), gaussians(50), gaussians(30), gaussians(150)
    index = Index.build(items, "csd", hubs=bank)
    index.add(more)
    index.remove(np.arange(0, 400, 7))
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    whole = {name: np.concatenate([items[name], more[name]]) for name in items}
    expected = of_definition("csd", whole, queries, bank)
    for one in (index, loaded):
        scores, ids = one.search(queries, 50)
        assert not np.isin(ids, np.arange(0, 400, 7)).any()
        np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, 1), atol=1e-3)
    loaded.add(take(more, slice(0, 1)))
    assert len(loaded) == len(index) + 1


@pytest.mark.parametrize("similarity", ["csd", "cosine"])
def test_a_probes_own_questions_do_not_count_for_its_item(similarity, gaussians):
    """Several questions an item: those of the bank, and of them those that are asked."""
    gallery, own, rng = gaussians(200), gaussians(60), np.random.default_rng(3)
    owners = np.repeat(np.arange(60), 3)
    questions = {
        name: (values[owners] + 0.05 * rng.normal(size=(180, 24))).astype("float32")
        for name, values in own.items()
    }
    index = Index.build(gallery, similarity, hubs=questions)
    probed = index.probe(questions, own, owners[:, None])
    is_own = np.arange(60)[:, None] == owners
    expected = of_definition(similarity, own, questions, questions, is_own)
    told = expected[np.arange(180), owners]
    np.testing.assert_allclose(probed.match_scores, told, rtol=1e-4, atol=1e-3)
    naive = of_definition(similarity, own, questions, questions)[np.arange(180), owners]
    assert np.abs(naive - told).min() > 0.004


def test_what_cannot_be_corrected_is_refused(gaussians, sets):
    items, bank = gaussians(120), gaussians(120)
    for similarity, more in (
        ("csd", {"candidates": 50}),
        (zoo.similarities.Wasserstein2(), {}),  # a root
        (zoo.similarities.Bhattacharyya(), {}),
    ):
        with pytest.raises(ValueError, match="`hubs` must be None"):
            Index.build(items, similarity, hubs=bank, **more)
    with pytest.raises(ValueError, match="`hubs` must be None"):
        Index.build(sets(120), "smooth_chamfer", hubs=sets(120))
    with pytest.raises(ValueError, match="at least 100 questions; received 99"):
        Index.build(items, "csd", hubs=take(bank, slice(0, 99)))
    with pytest.raises(ValueError, match="`hubs` must be of dimension 25; received 13"):
        Index.build(items, "csd", hubs={name: x[:, :12] for name, x in bank.items()})
    bank["mean"][3, 2] = np.nan
    with pytest.raises(ValueError, match="`hubs` must hold finite numbers"):
        Index.build(items, "csd", hubs=bank)
    with pytest.raises(ValueError, match='`hubs` must be "auto", True or False; received 3'):
        zoo.Retriever.build("photos_pfe", items, hubs=3)


def world(items=400, per_item=2, seed=0, dim=24):
    """Photos of which some are near to all questions, and questions of photos beside them."""
    rng = np.random.default_rng(seed)
    photos = rng.normal(size=(2 * items, dim))
    centre = 2 * rng.normal(size=dim) / np.sqrt(dim)
    photos += centre * rng.exponential(1.0, size=(2 * items, 1))  # how much of a hub each is
    owners = np.repeat(np.arange(items), per_item)
    questions = photos[owners] + 1.2 * rng.normal(size=(len(owners), dim)) + centre
    photos, questions = ({"mean": one.astype("float32")} for one in (photos, questions))
    probes = Probes.of(take(photos, slice(0, items)), questions, np.arange(items), owners, owners)
    return probes, take(photos, slice(items, 2 * items))


def test_correction_finds_more_and_the_test_says_so():
    probes, gallery = world()
    gain = hub_gain(gallery, zoo.similarities.Cosine(), "images", probes)
    assert gain.pays
    assert gain.corrected > gain.without + 0.02
    assert str(gain).startswith("hubs corrected: ")
    index = Index.build(gallery, "cosine", hubs=probes.questions("images"))
    right = [
        one.num_correct / one.num_queries
        for one in (probes.calibrate(index), probes.calibrate(Index.build(gallery, "cosine")))
    ]
    assert right == pytest.approx([gain.corrected, gain.without], abs=0.05)


def test_without_hubs_nothing_is_corrected():
    rng = np.random.default_rng(0)
    photos = {"mean": rng.normal(size=(400, 24)).astype("float32")}
    questions = {"mean": (photos["mean"] + rng.normal(size=(400, 24))).astype("float32")}
    probes = Probes.of(photos, questions, np.arange(400), np.arange(400))
    other = {"mean": rng.normal(size=(400, 24)).astype("float32")}
    gain = hub_gain(other, zoo.similarities.Cosine(), "images", probes)
    assert not gain.pays
    assert str(gain).startswith("hubs not corrected: ")
    found = np.arange(200) % 2 == 0  # by both searches the same
    assert not Gain.of(found, found).pays
    birds = probes_of("toy_birds_pfe")  # of classes
    images = {name: values[:100].astype("float32") for name, values in birds.images.items()}
    similarity = ClosedFormSampledDistance()
    assert hub_gain(images, similarity, "images", birds) is None


def test_a_retriever_corrects_where_it_pays(tmp_path):
    probes, gallery = world()
    towers = [zoo.encoders.vectors(24), zoo.encoders.vectors(24)]
    model = zoo.models.infonce(towers[0], caption_backbone=towers[1], dim=24)
    retriever = zoo.Retriever.build(model, gallery, probes=probes)
    assert retriever.index.hubs is not None
    assert retriever.gain.pays
    assert zoo.Retriever.build(model, gallery, probes=probes, hubs=False).index.hubs is None
    questions = take(probes.captions, slice(0, 30))
    questions = {"mean": questions["mean"].astype("float32") + 0.01}
    answers = retriever.ask(questions)
    retriever.save(tmp_path)
    again = zoo.Retriever.load(tmp_path, model)
    for one, other in zip(answers, again.ask(questions), strict=True):
        assert (one.ids == other.ids).all()
        assert one.wanted == pytest.approx(other.wanted, abs=1e-6)
    # What else fits is not known of corrected scores: then they stay as they are.
    told = probes_of("photos_pfe").fits["t2i"]
    fits = {"t2i": told}
    plain = dataclasses.replace(probes, fits=fits)
    assert zoo.Retriever.build(model, gallery, probes=plain).index.hubs is None
    both = dataclasses.replace(probes, fits={**fits, f"{OF_CORRECTED}t2i": told})
    corrected = zoo.Retriever.build(model, gallery, probes=both)
    assert corrected.index.hubs is not None
    assert corrected.judge.fits is told
    with pytest.raises(ValueError, match="`hubs` must be False for a model without probes"):
        zoo.Retriever.build(model, gallery, hubs=True)
