"""How sure an answer is, and when there is none: against the truth of a gallery."""

import numpy as np
import pytest

from demo import answers, narrowing, opening, verdicts
from demo.service import EVERYTHING, Service
from demo.sureness import FAILURE, RISKS, Judgement, promises
from demo.uncertainty_quality import UncertaintyQuality
from zoo.confidence import Confidence, candidate_thresholds

CAPTION = "a small bird with a red crown and black wings"


@pytest.fixture(scope="module")
def service(gaussians):
    return Service(gaussians, UncertaintyQuality(gaussians))


def _judge(gallery, *texts):
    return gallery.sureness("captions").judge(gallery, gallery.encoders.captions(texts), texts)


def test_probabilities_are_those_of_the_calibration(gaussians):
    sureness = gaussians.sureness("captions")
    assert sureness.by == "csd"  # whose mean over the gallery is a closed form
    query = gaussians.encoders.captions([CAPTION])
    scores = gaussians.index("images", "csd").query_scores(query)
    uncertainty = np.log(gaussians.encoders.uncertainty(query))
    expected = sureness.confidence.probability(scores, uncertainty)[0]
    assert _judge(gaussians, CAPTION)[0].probability == pytest.approx(expected, abs=1e-6)


def test_surer_questions_are_answered_rightly_more_often(gaussians):
    judged = gaussians.sureness("captions").judge(
        gaussians, gaussians.embeddings["captions"], gaussians.captions
    )
    probability = np.array([one.probability or 0 for one in judged])
    records = gaussians.records
    found = gaussians.index("images", gaussians.own_similarity).search(
        gaussians.embeddings["captions"], 1
    )[1][:, 0]
    right = records.image_labels[found] == records.caption_labels
    middle = np.median(probability)
    assert right[probability > middle].mean() > right[probability <= middle].mean()


@pytest.mark.parametrize(
    "text",
    ["wibble frobnicated zorp with quux", "ein kleiner roter Vogel mit schwarzen Flügeln", "the"],
)
def test_what_the_model_does_not_know_is_declined(gaussians, service, text):
    answer = service.find_images(text)["answer"]
    assert answer["kind"] == "unknown"
    assert answer["declined"]
    assert answer["probability"] is None
    assert answer["results"] == []
    assert answer["verdict"] == "I do not know such questions."
    everything = service.find_images(text, wrong_at_most=EVERYTHING)["answer"]
    assert len(everything["results"]) == 8


def test_usual_captions_are_hardly_ever_unknown(gaussians):
    judged = _judge(gaussians, *gaussians.captions)
    assert np.mean([one.kind == "unknown" for one in judged]) <= 0.06  # promised: 0.05
    assert np.mean([one.kind == "absent" for one in judged]) <= 0.06


def test_plain_colours_are_no_birds(gaussians):
    squares = [np.full((64, 64, 3), colour, np.uint8) for colour in np.eye(3) * 255]
    judged = gaussians.sureness("images").judge(gaussians, gaussians.encoders.images(squares))
    # Eighteen images are too few to say what is usual, so none is called unknown.
    assert {one.kind for one in judged} <= {"known", "absent"}


def test_a_promise_is_kept_by_its_threshold():
    rng = np.random.default_rng(0)
    probability = rng.uniform(size=4000)
    correct = rng.uniform(size=4000) < probability
    found = promises(probability, correct, candidate_thresholds(probability))
    assert [one.risk for one in found] == list(RISKS)
    fresh = rng.uniform(size=20000)
    wrong = rng.uniform(size=20000) >= fresh
    for one in found:
        if one.certified:
            assert wrong[fresh >= one.threshold].mean() <= one.risk + 0.01
    assert sum(one.certified for one in found) >= 4
    thresholds = [one.threshold for one in found if one.certified]
    assert thresholds == sorted(thresholds, reverse=True)
    assert FAILURE == 0.1
    none = promises(probability[:20], np.zeros(20, bool), np.linspace(0, 1, 50))
    assert not any(one.certified for one in none)
    assert [one.threshold for one in none] == pytest.approx([1 - risk for risk in RISKS])


def test_below_its_threshold_a_query_is_declined_unless_all_are_answered(gaussians, service):
    vague = "a bird with a short bill"
    found = service.find_images(vague, wrong_at_most=0.1)["answer"]
    assert found["declined"]
    assert "at most 1 in 10 answers are wrong" in found["reason"]
    assert found["results"] == []
    anyway = service.find_images(vague, wrong_at_most=0.1, anyway=True)["answer"]
    assert anyway["declined"]
    assert len(anyway["results"]) == 8
    assert not service.find_images(vague, wrong_at_most=EVERYTHING)["answer"]["declined"]


def test_additions_raise_the_measured_probability(gaussians, service):
    found = service.find_images("a bird with a short bill")
    now, groups = found["answer"]["probability"], found["narrow_it_down"]
    assert groups
    assert [g["expected"] for g in groups] == sorted((g["expected"] for g in groups), reverse=True)
    said = " ".join(gaussians.captions)
    for group in groups:
        for one in group["additions"]:
            assert one["words"].split()[-1] == group["about"]
            assert one["words"] in said
            assert one["probability"] > now
            (asked,) = _judge(gaussians, one["caption"])
            assert asked.probability == pytest.approx(one["probability"], abs=1e-6)


def test_phrases_end_where_a_sentence_or_a_list_does():
    found = list(narrowing.phrases("a bird with a long tail, pink legs and a crest.", {"bird"}))
    assert found == ["a long tail", "pink legs", "a crest"]


def test_each_word_is_left_out_once(gaussians, service):
    words = service.find_images("a small red bird")["words"]
    assert [one["word"] for one in words] == ["a", "small", "red", "bird"]
    (without,) = _judge(gaussians, "a small bird")
    expected = without.probability if without.kind == "known" else None
    assert words[2]["probability_without"] == pytest.approx(expected, abs=1e-6)
    value = float(gaussians.encoders.uncertainty(gaussians.encoders.captions(["a small bird"]))[0])
    assert words[2]["uncertainty_without"] == pytest.approx(value, abs=1e-6)


def test_examples_are_what_their_labels_say(gaussians, service):
    found = {one.label: one.caption for one in opening.examples(service)}
    sure = service.find_images(found["Sure"])["answer"]
    assert sure["results"][0]["right"]
    assert service.find_images(found["Nonsense"])["answer"]["kind"] == "unknown"
    if "Vague" in found:
        assert service.find_images(found["Vague"])["answer"]["declined"]
    if "Not here" in found:
        assert service.find_images(found["Not here"])["answer"]["kind"] == "absent"


def test_without_truth_a_runs_calibration_estimates(gaussians):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 30))
    own = gaussians.sureness("captions").confidence
    other = type(gaussians)(
        "photos",
        gaussians.encoders,
        gaussians.image_names,
        gaussians.image_paths,
        [],
        {"images": gaussians.embeddings["images"]},
        calibrations={"t2i": own},
    )
    sureness = other.sureness("captions")
    assert not any(one.certified for one in sureness.promises)
    assert "Estimated" in sureness.source
    (judged,) = _judge(other, CAPTION)
    assert 0 <= judged.probability <= 1
    none = type(gaussians)(
        "photos",
        gaussians.encoders,
        gaussians.image_names,
        gaussians.image_paths,
        [],
        {"images": gaussians.embeddings["images"]},
    )
    (judged,) = _judge(none, CAPTION)
    assert judged == Judgement(None)
    assert "not known" in verdicts.sentence(judged, "captions", "picture")
    assert Confidence.fit(scores, scores.argmax(1) < 15).k == 1
    assert answers.declined(none, "captions", judged, 0.2) is None


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (0.0, "hardly any"),
        (0.05, "about 1 in 20"),
        (0.1, "about 1 in 10"),
        (0.26, "about 3 in 10"),
        (0.949, "about 9 in 10"),
        (0.95, "nearly all"),
    ],
)
def test_a_frequency_is_a_number_of_questions(probability, words):
    assert verdicts.frequency(probability) == words


def test_shares_and_levels():
    assert [verdicts.share(risk) for risk in RISKS] == [
        "1 in 10",
        "1 in 5",
        "1 in 3",
        "1 in 2",
        "2 in 3",
    ]
    assert [verdicts.level(p) for p in (0.2, 0.5, 0.9)] == ["Unsure", "Likely", "Sure"]
