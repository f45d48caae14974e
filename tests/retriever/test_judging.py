"""Questions of which an index on the disk finds fewer results than a judge reads."""

from types import SimpleNamespace

import numpy as np
import pytest

from halo_search.confidence import calibrate_on
from halo_search.index import Index
from halo_search.retriever.calibration import Calibration
from halo_search.retriever.judging import judged
from halo_search.retriever.questions import Questions
from halo_search.retriever.results import search


@pytest.fixture(scope="module")
def calibration():
    """A calibrated gallery of points, whose model reads no texts."""
    rng = np.random.default_rng(0)
    items = rng.normal(size=(200, 8)).astype("float32")
    queries = items + rng.normal(scale=0.7, size=items.shape)
    index = Index.build({"mean": items}, "cosine")
    model = SimpleNamespace(similarity=index.similarity, reads_texts=False)
    calibration = Calibration(index, model)
    calibration.restore(calibrate_on(index, {"mean": queries}, {"mean": items}), None)
    return calibration


def test_only_they_stay_without_a_probability(calibration):
    queries = np.random.default_rng(1).normal(size=(5, 8)).astype("float32")
    questions = Questions({"mean": queries}, "captions")
    results = search(calibration.index, questions.embeddings, 20)
    expected = judged(calibration, questions, results)
    few = [1, 4]
    results.scores[few, 15:], results.ids[few, 15:] = np.nan, -1
    judgements = judged(calibration, questions, results)
    for row, (judgement, whole) in enumerate(zip(judgements, expected, strict=True)):
        if row in few:
            assert judgement.wanted is None
            assert judgement.reason == "The search found fewer than 20: raise `candidates`."
        else:
            assert judgement.wanted == pytest.approx(whole.wanted, rel=1e-6)
            assert judgement.reason == whole.reason


def test_questions_of_the_gallerys_own_side_have_none(calibration):
    questions = Questions({"mean": np.eye(8, dtype="float32")[:2]}, "images")
    results = search(calibration.index, questions.embeddings, 3)
    for judgement in judged(calibration, questions, results):
        assert judgement.wanted is None
        assert "calibrated for captions, not for images" in judgement.reason
