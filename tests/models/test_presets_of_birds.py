from pathlib import Path

import numpy as np
import pytest

import zoo
from tools import preset
from zoo.embeddings import as_embedding
from zoo.evaluation.retrieval import encode, evaluate

BIRDS = ("birds_infonce", "birds_pfe", "birds_dive")
QUESTIONS = Path(__file__).parent.parent / "questions" / "ordinary_birds.txt"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(n, marks=[] if n == "birds_pfe" else pytest.mark.very_slow) for n in BIRDS
    ],
)
def known(request):
    return request.param, zoo.from_preset(request.param), zoo.evaluation.probes_of(request.param)


def test_a_preset_of_birds_says_what_it_is(known):
    name, model, probes = known
    card = zoo.list_presets()[name]
    expected = {"trained_on", "command", "license", "terms", "not_for", "metrics", "chance"}
    assert expected <= set(card)
    folder = zoo.models.presets.PACKAGED / name
    assert (folder / "model.weights.h5").stat().st_size <= 12_000_000
    texts = ["a small bright yellow bird", "this bird is yellow and small", "a large black bird"]
    captions = as_embedding(model.encode_captions(texts))
    scores = np.asarray(model.similarity(captions, captions))
    assert scores[0, 1] > scores[0, 2]
    assert probes.by_class
    assert set(probes.known) == {"i2t", "t2i"}
    assert len(probes.trained_on) > 1000


def test_a_preset_of_birds_understands_ordinary_questions(known):
    _, model, probes = known
    asked = QUESTIONS.read_text(encoding="utf-8").splitlines()
    answers = zoo.Retriever.build(model, probes.images).ask(asked)
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
