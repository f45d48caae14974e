"""Questions that the packaged model does not know, and the calibrations that decline them."""

import json

import numpy as np
import pytest

from studies import strange_questions
from studies.opened import some_of
from synthetic_run import encoded, records
from zoo import evaluation
from zoo.confidence.words import unknown_words
from zoo.data.text.captions import normalise, word_tokenizer
from zoo.embeddings.arrays import coordinates
from zoo.errors import InputError
from zoo.evaluation.known import query_facts


@pytest.mark.very_slow  # lists of questions are asked in tests/retriever/test_packaged_photos.py
def test_the_packaged_model_declines_what_it_does_not_know(tmp_path, monkeypatch, capsys):
    """140 texts of invented words, 50 in other languages and 30 plain colours; its own hardly."""
    model, test = evaluation.open_run("toy_birds_pfe")
    opened = model, some_of(test, 120)
    monkeypatch.setattr(strange_questions, "open_run", lambda *_: opened)
    strange_questions.main(["toy_birds_pfe", f"--out={tmp_path}"])
    found = json.loads((tmp_path / "unknown.json").read_text())
    asked = {name: one["queries"] for name, one in found.items()}
    assert asked == {
        "invented words": 140,
        "other languages": 50,
        "captions": 1200,
        "plain colours": 30,
        "images": 120,
    }
    strange = [found[name] for name in ("invented words", "other languages", "plain colours")]
    assert sum(one["declined"] for one in strange) >= 0.95 * 220
    assert min(one["share"] for one in strange) >= 0.85  # of colours, the texts are all declined
    assert found["captions"]["share"] <= 0.05
    assert found["images"]["share"] <= 0.05
    assert "invented words: declined 140 of 140 (100.0%)" in capsys.readouterr().out
    known = evaluation.probes_of("toy_birds_pfe").known["t2i"]
    texts = ["the", "Ein kleiner Vogel", "this bird has a red crown, a black bill and white wings"]
    asked = {name: np.asarray(value) for name, value in _encoded(model, texts).items()}
    first, second, third = known.reasons(**query_facts(model, asked, texts))
    assert "it has no words that name something" in first
    assert "it does not know the words “ein”, “kleiner” and “vogel”" in second
    assert third is None


def _encoded(model, texts):
    return model.caption_encoder.predict(np.asarray(model.tokenizer(np.array(texts))), verbose=0)


def test_invented_words_are_of_eight_lengths_and_plain_colours_are_plain():
    texts = strange_questions.invented_texts(np.random.default_rng(0))
    assert len(texts) == len(set(texts)) == 140
    assert {len(text.split()) for text in texts} == {1, 2, 3, 4, 5, 6, 8}
    shown = strange_questions.plain_colours(np.random.default_rng(0), 5)
    assert shown.shape == (30, 5, 5, 3)
    assert (shown == shown[:, :1, :1]).all()
    assert len(np.unique(shown[:, 0, 0], axis=0)) > 25


def test_words_are_counted_as_the_tokenizer_knows_them():
    tokenizer = word_tokenizer(["a red bird"], max_words=2)
    words, unknown = unknown_words(tokenizer, ["A RED, red   Bird's!", "", "ein roter Vogel"])
    np.testing.assert_array_equal(words, [3, 0, 3])  # "a" names nothing
    assert unknown == [["birds"], [], ["ein", "roter", "vogel"]]
    assert unknown_words(object(), ["ein roter Vogel"])[1] is None


@pytest.mark.parametrize(
    "text",
    ["A RED, red   Bird's!", "naïve Ünïcödé—x", "日本語 text", 'white-breasted 3.5" x', "e\u0301"],
)
def test_words_are_those_of_the_graph(text):
    tokenizer = word_tokenizer(["nothing"], max_words=2)
    expected = [w for w in normalise([text]).numpy()[0].decode().split() if w != "a"]
    assert unknown_words(tokenizer, [text])[1] == [expected]


def test_coordinates_hold_the_variance_of_gaussians_and_the_mean_of_valid_tokens():
    shown = encoded(records(images=5))
    found = coordinates(shown.images)
    np.testing.assert_array_equal(found[:, :6], shown.images["mean"])
    np.testing.assert_array_equal(found[:, 6:], shown.images["log_variance"])
    tokens = np.arange(12.0).reshape(1, 3, 4)
    mask = np.array([[True, True, False]])
    np.testing.assert_array_equal(
        coordinates({"tokens": tokens, "mask": mask}), tokens[:, :2].mean(axis=1)
    )


def test_a_model_that_knows_nothing_of_its_training_is_refused(monkeypatch):
    monkeypatch.setattr(strange_questions, "open_run", lambda *_: (None, None))
    monkeypatch.setattr(strange_questions, "probes_of", lambda name: None)
    with pytest.raises(InputError, match="has no probes that know what training has seen"):
        strange_questions.main(["run"])
