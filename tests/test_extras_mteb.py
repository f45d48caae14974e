"""MTEB's own evaluator over our models and data: the same recall and nAUC as ours."""

import re
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo import data
from zoo.confidence import abstention_auc
from zoo.evaluation.runs import data_of

mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed: it needs torch")

from tools.drawn_photos import draw_photos  # noqa: E402
from zoo.retriever.mteb import JUDGED, PLAIN, MtebModel, retrieval_task  # noqa: E402

PAGE = Path(__file__).parent.parent / "docs" / "howto" / "mteb.md"

EVERY = 4  # which of the images, with their captions


@pytest.fixture(scope="module")
def records():
    return data.open(data_of("toy_birds_pfe"), "test").records.select(np.arange(0, 480, EVERY))


def evaluated(model, task):
    (result,) = mteb.evaluate(model, [task], cache=None, show_progress_bar=False).task_results
    return result.scores["test"][0]


def ours(model, records, direction):
    """`(right (Q,), what the retriever says (Q,), best score (Q,))` of every question."""
    captions, paths = [str(text) for text in records.captions], list(records.image_paths)
    labels = records.caption_labels, records.image_labels
    if direction == "t2i":
        retriever = zoo.Retriever.build(model, paths)
        answers = retriever.ask(captions, k=1)
    else:
        retriever = zoo.Retriever.build(model, captions, side="captions")
        answers = retriever.ask([Path(path) for path in paths], k=1)
        labels = labels[::-1]
    right = np.array([labels[1][one.ids[0]] for one in answers]) == labels[0]
    said = np.array([one.probability or 0.0 for one in answers])
    return right, said, np.array([one.scores[0] for one in answers])


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_mteb_measures_what_we_measure(records, direction):
    model = zoo.from_preset("toy_birds_pfe")
    right, said, best = ours(model, records, direction)
    task = retrieval_task("ToyBirds", records, direction)
    judged, plain = MtebModel(model), MtebModel(model, judged=False)
    found = evaluated(judged, task)
    # Several items are right, and a precision at one is the share of right first answers.
    assert found["precision_at_1"] == pytest.approx(right.mean(), abs=1e-5)
    assert found["hit_rate_at_1"] == pytest.approx(right.mean(), abs=1e-5)
    expected = abstention_auc(said, right)
    assert found["nauc_precision_at_1_max"] == pytest.approx(expected, abs=1e-3)
    other = evaluated(plain, task)
    assert other["precision_at_1"] == found["precision_at_1"]
    assert other["nauc_precision_at_1_max"] == pytest.approx(abstention_auc(best, right), abs=1e-3)
    assert abs(expected - abstention_auc(best, right)) > 0.02  # they are not the same number
    for one, says in ((judged, JUDGED), (plain, PLAIN)):
        assert one.mteb_model_meta.experiment_kwargs["first_score"] == says


def test_embeddings_and_their_similarity():
    """What tasks other than retrieval ask for."""
    model = zoo.from_preset("toy_birds_pfe")
    wrapped = MtebModel(model)
    pictures = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype="uint8")
    texts = ["a red bird", "a small blue bird with a long bill"]
    images = wrapped.encode([{"image": list(pictures[:2])}, {"image": list(pictures[2:])}])
    captions = wrapped.encode([{"text": texts}])
    expected = model.similarity(model.encode_images(pictures), model.encode_captions(texts))
    np.testing.assert_allclose(wrapped.similarity(images, captions), expected, rtol=1e-4, atol=1e-4)
    pairs = wrapped.similarity_pairwise(images[:2], captions)
    np.testing.assert_allclose(pairs, np.diag(expected[:2]), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"`direction` must be one of .*; received 'up'"):
        retrieval_task("x", None, "up")
    with pytest.raises(ValueError, match="`index` must be called before"):
        wrapped.search(None, top_k=1)


@pytest.mark.slow
def test_the_pages_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw_photos(tmp_path / "flickr8k", 60)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    (result,) = names["results"].task_results
    assert 0 < result.scores["test"][0]["recall_at_10"] <= 1
