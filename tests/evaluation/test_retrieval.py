import numpy as np

import zoo
from synthetic_run import records
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
