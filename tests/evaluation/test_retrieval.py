import dataclasses
from types import SimpleNamespace

import numpy as np

import synthetic_run
import zoo
from synthetic_run import records
from zoo import metrics
from zoo.data import Split
from zoo.evaluation import known, runs
from zoo.evaluation.phrases import phrases
from zoo.evaluation.retrieval import EncodedSplit


def gaussians(rng, count, spread):
    mean = rng.normal(size=(count, 4)).astype("float32")
    log_variance = rng.normal(spread, 1.0, (count, 4)).astype("float32")
    return {"mean": mean, "log_variance": log_variance}


def encoded():
    rng = np.random.default_rng(0)
    return EncodedSplit(records(5, 3, labels=5), gaussians(rng, 5, -4.0), gaussians(rng, 15, 1.0))


class Model:
    similarity = staticmethod(zoo.similarities.ClosedFormSampledDistance(1.0, 0.0))


def test_mean_log_sigma_is_that_of_sigma_not_of_its_square():
    """Table D.1's E[log σ]."""
    split = encoded()
    found = zoo.evaluation.evaluate(Model, split, ("own",))["mean_log_sigma"]
    for side, embedding in (("images", split.images), ("captions", split.captions)):
        sigma = np.exp(embedding["log_variance"].astype("float64")) ** 0.5
        np.testing.assert_allclose(found[side], np.log(sigma).mean(), rtol=1e-6)
    assert found["images"] < -1.5 < 0 < found["captions"]


def test_each_direction_counts_its_own_queries():
    split = encoded()
    found = zoo.evaluation.evaluate(Model, split, ("own",))["retrieval"]["csd"]
    scores = np.asarray(Model.similarity(split.images, split.captions))
    owners = split.records.caption_image
    i2t = np.mean([owners[row.argmax()] == image for image, row in enumerate(scores)])
    t2i = np.mean([column.argmax() == own for own, column in zip(owners, scores.T, strict=True)])
    assert found["i2t_recall@1"] == 100 * i2t
    assert abs(found["t2i_recall@1"] - 100 * t2i) < 1e-9


def test_uncertainties_belong_to_the_queries_of_their_direction():
    rng = np.random.default_rng(1)
    count = 12
    images, captions = gaussians(rng, count, -4.0), gaussians(rng, count, -2.0)
    spreads = rng.permutation(count).astype(float), rng.permutation(count).astype(float)
    split = EncodedSplit(records(count, 1, labels=count), images, captions, *spreads)
    found = zoo.evaluation.evaluate(Model, split, ("own",))["uncertainty"]
    scores = np.asarray(Model.similarity(images, captions))
    for name, rows, own in (("i2t", scores, spreads[0]), ("t2i", scores.T, spreads[1])):
        error = rows.argmax(axis=1) != np.arange(count)
        risk = np.cumsum(error[np.argsort(own)]) / np.arange(1, count + 1)
        np.testing.assert_allclose(found[name]["risk_coverage"]["risk"], risk)
        surest = found[name]["recall_by_uncertainty"]["uncertainty"][0]
        assert 0 <= surest <= 1  # of those from 0 to 11


def test_texts_are_learnt_from_training_and_tried_on_held_out_ones(monkeypatch):
    asked, rng = [], np.random.default_rng(0)

    def token_ids(_, texts):
        asked.append({word for text in texts for word in text.split()})
        return np.zeros((len(texts), 2), int)

    def of_arrays(ids):
        return {"mean": rng.normal(size=(len(ids), 4))}

    monkeypatch.setattr(known, "token_ids", token_ids)
    monkeypatch.setattr(known, "made_up", lambda ids, *_: ids)
    monkeypatch.setattr(known, "spells_words", lambda _: True)
    seen, held_out = (
        dataclasses.replace(records(40, 3), captions=[f"{one} bird"] * 120)
        for one in ("red", "blue")
    )
    tower = SimpleNamespace(of_arrays=of_arrays)
    model = SimpleNamespace(tower=lambda side: tower, tokenizer=SimpleNamespace(word_ids=None))
    source = SimpleNamespace(take=lambda _: np.zeros((40, 2)))
    found = known.known_queries(model, Split(seen, source), synthetic_run.encoded(held_out))
    assert set(found) == {"t2i"}
    assert asked == [{"red", "bird"}, {"red", "bird"}, {"blue", "bird"}]


def test_a_phrase_names_something():
    found = phrases(["a bird", "the small bird of a lake"] * 40, np.random.default_rng(0))
    assert {"bird", "a bird", "small bird"} <= set(found)
    assert not {"a", "the"} & set(found)


def test_an_ensemble_is_measured_by_the_mean_of_its_runs(monkeypatch):
    shown = synthetic_run.encoded(records(12, 2, labels=12))
    folders = SimpleNamespace(existing=lambda path: SimpleNamespace(path=path))
    monkeypatch.setattr(runs, "RunFolder", folders)
    monkeypatch.setattr(runs, "from_preset", lambda _: Model)
    monkeypatch.setattr(runs, "encode", lambda *_: shown)
    monkeypatch.setattr(runs, "measure_pairs", lambda pairs, *_: {"of": type(pairs)})
    found = runs.ensemble(["a", "b"], SimpleNamespace(records=shown.records, source=None))
    assert found["of"] is metrics.MeanSimilarity
    assert found["retrieval"]["ensemble"] == found["retrieval"]["a"] == found["retrieval"]["b"]
