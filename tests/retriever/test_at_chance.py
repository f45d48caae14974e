"""A model at chance gives no probability and says so; the presets keep theirs."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest

import zoo
from halo_search.cli.search import main
from halo_search.confidence import Fits, Probes, calibrate_on
from halo_search.confidence.calibrate import AtChanceError, found_first
from halo_search.confidence.fits import Trial
from halo_search.confidence.quality import ceiling
from halo_search.index import Index
from tiny_hub import tiny_hub
from zoo.data import packaged_photos
from zoo.evaluation import probes_of

SENTENCE = "matches questions with items no better than chance"
FIRST = "toy_birds_pfe"  # the others take long to open; test_packaged_photos.py asks photos_pfe
QUESTIONS = ["a dog on a beach", "asdf qwer", "a man on a bus"]


@pytest.fixture(autouse=True)
def _few_general_photos(monkeypatch):
    """They tell chance as all of them do."""
    few = packaged_photos()[:50]
    monkeypatch.setattr("zoo.evaluation.probes.packaged_photos", lambda: few)


def shuffled(model, seed=0):
    """The same weights in another order within each array."""
    rng = np.random.default_rng(seed)
    model.set_weights([rng.permutation(w.ravel()).reshape(w.shape) for w in model.get_weights()])
    return model


def refused(model, photos):
    """Builds, asks, and checks that every answer is refused in one sentence."""
    with pytest.warns(UserWarning, match=SENTENCE) as told:
        retriever = zoo.Retriever.build(model, photos)
    assert len([one for one in told if SENTENCE in str(one.message)]) == 1
    for answer in retriever.ask(QUESTIONS):
        assert answer.probability is answer.fits is answer.wanted is answer.number is None
        assert answer.first_k() is None
        assert answer.verdict in ("unsure", "not understood")
        if answer.verdict == "unsure":
            assert SENTENCE in answer.reason
            assert answer.reason.count(".") == 1
    assert retriever.confidence is None
    return retriever


@pytest.mark.parametrize("family", [pytest.param("clip", marks=pytest.mark.very_slow), "siglip"])
def test_a_hosted_model_of_random_weights_is_refused(family, tmp_path):
    pytest.importorskip("keras_hub")
    backbone, preprocessor = tiny_hub(family)
    model = zoo.from_preset(backbone, preprocessor=preprocessor)
    retriever = refused(model, packaged_photos()[:40])
    retriever.save(tmp_path / "saved")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        answer = zoo.Retriever.load(tmp_path / "saved").ask(QUESTIONS[0])
    assert answer.probability is None
    assert SENTENCE in answer.reason


@pytest.mark.very_slow
def test_nothing_is_said_of_hubs_by_a_model_at_chance(tmp_path, capsys):
    """Random points crowd, which says nothing of the photos."""
    for part in tiny_hub("clip"):
        part.save_to_preset(tmp_path / "model")
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in packaged_photos()[:60]:
        (photos / path.name).symlink_to(path)
    main(["build", str(photos), str(tmp_path / "index"), "--model", str(tmp_path / "model")])
    said = capsys.readouterr().out
    assert SENTENCE in said
    assert "warning" not in said


@pytest.mark.very_slow  # encodes the general photos and their texts twice
def test_a_preset_of_changed_weights_is_calibrated_anew_and_of_shuffled_ones_refused():
    """Its own probes are of other weights: the packaged photos take their place."""
    model = zoo.from_preset("photos_points")
    photos = packaged_photos()[:20]
    assert isinstance(probes_of(model.origin), Probes)
    model.set_weights([1.01 * w for w in model.get_weights()])
    retriever = zoo.Retriever.build(model, photos)
    assert "Calibrated on general photos" in retriever.ask(QUESTIONS[0]).reason
    refused(shuffled(model), photos)


@pytest.mark.parametrize(
    "name",
    [
        name if name == FIRST else pytest.param(name, marks=pytest.mark.very_slow)
        for name in zoo.list_presets()
    ],
)
def test_presets_find_what_their_probes_want(name):
    probes, model = probes_of(name), zoo.from_preset(name)
    for direction, side in (("t2i", "images"), ("i2t", "captions")):
        some = {key: part[:40] for key, part in probes.items(direction).items()}
        index = Index.build(some, model.similarity, side=side)
        pairs = probes.pairs(direction)
        matches = pairs["matches"]
        rows = np.where(matches, np.arange(matches.shape[1]), -1)
        wants = np.unique(matches, axis=0, return_inverse=True)[1].reshape(-1)
        found, count = found_first(index, pairs["queries"], pairs["own"], rows, wants)
        assert found >= 15
        assert count >= 30
    assert probes.calibrate(index).num_queries >= 90  # of pictures; test_packaged_photos.py: words


def random_pairs(rng, count, kinds, hub=0.0):
    """Questions and items that have nothing in common; `hub` draws all questions to few items."""
    queries, own = rng.normal(size=(2, count, 8))
    queries[:, 0] += hub
    return queries, own, np.arange(count) % kinds


@pytest.mark.parametrize("hub", [0.0, 20.0])
@pytest.mark.parametrize("kinds", [8, 300])
def test_chance_is_taken_for_a_match_in_one_of_a_hundred_models(kinds, hub):
    """Also where one item attracts all questions, so that a binomial test would fail."""
    rng, passed, draws = np.random.default_rng(kinds), 0, 150
    index = Index.build(rng.normal(size=(20, 8)), "cosine")
    for seed in range(draws):
        queries, own, wants = random_pairs(rng, 300, kinds, hub)
        rows = np.arange(300)[:, None]
        passed += found_first(index, {"mean": queries}, {"mean": own}, rows, wants, seed)[0] > 4
    assert passed <= 6  # of 150 at 1 %: more has a chance of 0.001


def test_a_weak_model_is_not_at_chance():
    rng = np.random.default_rng(0)
    own = rng.normal(size=(400, 16))
    queries = own + 3 * rng.normal(size=own.shape)
    index = Index.build(rng.normal(size=(60, 16)), "cosine")
    confidence = calibrate_on(index, queries, own)
    assert confidence.num_correct < 0.3 * confidence.num_queries
    with pytest.raises(AtChanceError, match=SENTENCE):
        calibrate_on(index, rng.permutation(queries), own)


def test_no_probability_is_above_what_the_likeliest_probes_have_shown():
    """Questions that lie far beyond the probes are not surer than the surest of these."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(600, 8))
    queries = own + rng.normal(size=own.shape)
    index = Index.build(own[:300], "cosine")
    confidence = calibrate_on(index, queries[300:], own[300:])
    most = confidence.in_gallery.ceiling
    assert 0.3 < most < 0.98
    scores = index.query_scores(own[:300], copies=confidence.copies)  # each is its own question
    assert expit(confidence.logit(scores)).max() > most
    assert confidence.probability(scores).max() == most


def test_the_ceiling_is_a_bound_of_what_the_likeliest_trials_have_shown():
    probability = np.linspace(0, 1, 200)
    right = np.arange(200) % 5 == 0  # one in five, whatever is said
    assert ceiling(probability, right) == pytest.approx(binomtest(10, 50).proportion_ci(0.98).high)
    assert ceiling(probability, np.ones(200)) == 1.0
    assert ceiling(probability, right, np.arange(200) // 50) > 0.7  # one group tells little
    trial = Trial(40, probability[:, None], right[:, None] * 1.0, 200)
    fits = Fits(np.array([6.0, 30.0]), trials=(trial,))
    assert fits.others([[0.0]])[0, 0] == ceiling(probability, right)
    assert Fits(np.array([6.0, 30.0]), most=0.4).others([[0.0]])[0, 0] == 0.4
