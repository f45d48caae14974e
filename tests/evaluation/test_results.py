"""What metrics.json holds of a split."""

import dataclasses

import numpy as np
import pytest

import synthetic_run
from zoo import metrics
from zoo.evaluation import results


def test_the_first_images_are_a_gallery_of_their_own():
    """As VSE++'s code validates: the first 5,000 captions of COCO's 25,000, and their images."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 24)) + 3 * np.repeat(np.eye(12), 2, axis=1)
    found = results.first_images(scores, synthetic_run.records(12, 2, labels=12), 4)
    truth = np.arange(4)[:, None] == np.repeat(np.arange(4), 2)
    assert found == metrics.evaluate_retrieval(scores[:4, :8], truth)
    whole = metrics.evaluate_retrieval(scores, np.arange(12)[:, None] == np.repeat(range(12), 2))
    assert found["rsum"] > whole["rsum"]  # what would be compared with the paper otherwise


@pytest.mark.parametrize(("many", "expected"), [(12, True), (13, False)])
def test_only_a_split_of_cocos_size_has_them(many, expected, monkeypatch):
    class Encoded:
        caption_uncertainty = None

        def kept_pairs(self, similarity):
            return np.eye(12)

    class Model:
        similarity = None

    class Split:
        records = dataclasses.replace(synthetic_run.records(12, 1, labels=12), class_names=None)
        source = truth = true_matches = None

    monkeypatch.setattr(results, "encode", lambda *_: Encoded())
    monkeypatch.setattr(results, "evaluate", lambda *_: {})
    monkeypatch.setattr(results, "MANY", many)
    monkeypatch.setattr(results, "FIRST", 4)
    found, _ = results.measure(Model(), Split())
    assert ("first_1k" in found) == expected
