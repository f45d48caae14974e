"""An export tells the queries that its model does not know, as `zoo.confidence` does."""

import numpy as np
import pytest
import tensorflow as tf

from export.signatures import Signatures
from zoo.confidence import KnownQueries
from zoo.evaluation.known import query_facts

RNG = np.random.default_rng(0)
STRANGE = ["zorbly quib", "", "the", "a " * 60]


def facts_of(model, texts):
    return query_facts(model, model.caption_encoder(model.tokenizer(texts)), texts)


@pytest.fixture(scope="module")
def sides(pcme, birds):
    """By direction the `KnownQueries` of 400 held-out queries, and the pictures among them."""
    model = pcme.model
    words = model.tokenizer.get_vocabulary(include_special_tokens=False)
    texts = [" ".join(RNG.choice(words, size)) for size in RNG.integers(5, 12, 500)]
    pictures = RNG.uniform(0, 255, (500, *model.image_encoder.input_shape[1:])).astype("float32")
    found = {}
    for direction, facts in (
        ("i2t", query_facts(model, model.image_encoder(pictures))),
        ("t2i", facts_of(model, texts)),
    ):
        found[direction] = KnownQueries.fit(facts["means"][:100], facts["means"][100:], rank=8)
    return found, pictures


@pytest.fixture(scope="module")
def functions(pcme, sides):
    return Signatures(pcme.model, known=sides[0]).concrete()


def test_captions_are_judged_by_words_and_vectors(functions, sides, pcme, birds):
    words = birds.captions[0].split()
    mixed = [f"{words[-1]} zorbly", f"{words[-1]} {words[-2]} zorbly", words[-1], "the zorbly"]
    texts = [*STRANGE, *mixed, *birds.captions[:8]]
    facts = facts_of(pcme.model, texts)
    expected = sides[0]["t2i"].p_values(facts["means"])
    declined = sides[0]["t2i"].declined(**facts)
    assert 3 < declined.sum() < len(texts)
    for name in ("encode_captions", "index_captions"):
        found = functions[name](captions=tf.constant(texts))
        np.testing.assert_allclose(found["known_p_value"], expected, atol=1.1 / 401)
        np.testing.assert_array_equal(found["unknown"], declined)


def test_pictures_are_judged_by_vectors(functions, sides, pcme):
    known, pictures = sides
    asked = np.concatenate([pictures[:6], np.full_like(pictures[:1], 250)])
    facts = query_facts(pcme.model, pcme.model.image_encoder(asked))
    found = functions["encode_pixels"](pixels=tf.constant(asked))
    # A distance may fall on the other side of a held-out one by rounding: one place of 400.
    expected = known["i2t"].p_values(facts["means"])
    np.testing.assert_allclose(found["known_p_value"], expected, atol=1.1 / 401)


def test_match_and_exports_without_probes_say_nothing_of_it(functions, pcme):
    assert not {"image_unknown", "caption_unknown"} & set(functions["match"].structured_outputs)
    plain = Signatures(pcme.model).functions["encode_captions"].get_concrete_function()
    assert "unknown" not in plain.structured_outputs
