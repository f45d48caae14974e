"""The packaged presets of birds: what they say of themselves, and what they understand."""

from pathlib import Path

import numpy as np
import pytest

import zoo
from tools import preset
from zoo.embeddings import as_embedding
from zoo.evaluation.retrieval import encode, evaluate

BIRDS = ("birds_infonce", "birds_pfe", "birds_dive")
QUESTIONS = Path(__file__).parent.parent / "questions" / "ordinary_birds.txt"


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "birds_pfe" else pytest.mark.very_slow) for n in BIRDS],
)
def test_a_preset_of_birds_says_what_it_is(name):
    card = zoo.list_presets()[name]
    assert {"trained_on", "command", "license", "terms", "not_for", "metrics", "chance"} <= set(
        card
    )
    folder = zoo.models.presets.PACKAGED / name
    assert (folder / "model.weights.h5").stat().st_size <= 12_000_000
    model = zoo.from_preset(name)
    texts = ["a small bright yellow bird", "this bird is yellow and small", "a large black bird"]
    captions = as_embedding(model.encode_captions(texts))
    scores = np.asarray(model.similarity(captions, captions))
    assert scores[0, 1] > scores[0, 2]
    probes = zoo.evaluation.probes_of(name)
    assert probes.by_class
    assert set(probes.known) == {"i2t", "t2i"}
    assert len(probes.trained_on) > 1000


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "birds_pfe" else pytest.mark.very_slow)
        for name in BIRDS
    ],
)
def test_a_preset_of_birds_understands_ordinary_questions(name):
    model, probes = zoo.from_preset(name), zoo.evaluation.probes_of(name)
    asked = QUESTIONS.read_text(encoding="utf-8").splitlines()
    retriever = zoo.Retriever.build(model, probes.images)
    answers = retriever.ask(asked)
    assert np.mean([answer.verdict != "not understood" for answer in answers]) >= 0.9
    assert all(answer.probability is not None for answer in answers if answer.verdict == "likely")


@pytest.mark.very_slow
@pytest.mark.parametrize("name", BIRDS)
def test_a_preset_of_birds_gives_the_figures_of_its_card(name, shared_data):
    root = shared_data / "CUB_200_2011_crops"
    model, test = zoo.evaluation.open_run(name, data_dir=root)
    encoded, card = encode(model, test.records, test.source), zoo.list_presets()[name]
    found = next(iter(evaluate(model, encoded, ("own",))["retrieval"].values()))
    for key, value in card["metrics"].items():
        assert found[key] == pytest.approx(value, abs=0.3), key
    said = preset.said_by(zoo.evaluation.probes_of(name), model.similarity, encoded)
    for direction, values in card["confidence"].items():
        assert said[direction] == pytest.approx(values, abs=0.02), direction
