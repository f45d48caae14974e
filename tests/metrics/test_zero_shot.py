import itertools

import numpy as np
import pytest

from zoo.data.text.prompts import class_prompts, spoken, templates
from zoo.metrics.zero_shot import (
    choose_prompts,
    mean_embeddings,
    mean_similarities,
    top_1,
    zero_shot_scores,
)


def problem(images=60, classes=4, prompts=5, seed=0):
    rng = np.random.default_rng(seed)
    uncertainty = rng.uniform(size=(classes, prompts))
    labels = rng.integers(classes, size=images)
    signal = (labels[:, None] == np.arange(classes))[:, :, None]
    noise = rng.normal(size=(images, classes, prompts))
    return signal + 3 * uncertainty * noise, uncertainty, labels


def test_there_are_80_templates_each_with_a_place_for_the_name():
    assert len(templates()) == len(set(templates())) == 80
    assert all(sentence.count("{}") == 1 for sentence in templates())


def test_class_names_are_spoken():
    assert spoken("017.Red_tailed_Hawk") == "red tailed hawk"
    assert spoken("St. Bernard") == "st. bernard"
    assert class_prompts(["001.A_b", "c"], ["a {}.", "{}!"]) == ["a a b.", "a b!", "a c.", "c!"]


@pytest.mark.parametrize("kept", [None, 2, [1, 2, 3, 5]])
def test_scores_are_means_over_the_most_certain_prompts(kept):
    similarity, uncertainty, _ = problem()
    scores = zero_shot_scores(mean_similarities(similarity, uncertainty), kept)
    counts = np.broadcast_to(5 if kept is None else kept, (4,))
    for column, count in enumerate(counts):
        chosen = np.argsort(uncertainty[column])[:count]
        expected = similarity[:, column, chosen].mean(axis=1)
        np.testing.assert_allclose(scores[:, column], expected)


@pytest.mark.parametrize("length", [1.0, 2.0])
def test_embeddings_are_averaged_over_the_most_certain_prompts(length):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(12, 8))
    mean *= length / np.linalg.norm(mean, axis=1, keepdims=True)
    log_variance, uncertainty = rng.normal(size=(12, 8)), rng.uniform(size=(3, 4))
    found = mean_embeddings({"mean": mean, "log_variance": log_variance}, uncertainty)
    for row in range(12):
        column, k = divmod(row, 4)
        chosen = 4 * column + np.argsort(uncertainty[column])[: k + 1]
        expected = mean[chosen].mean(axis=0)
        if length == 1:
            expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(found["mean"][row], expected, atol=1e-6)
        variance = np.exp(log_variance[chosen]).mean(axis=0)
        np.testing.assert_allclose(np.exp(found["log_variance"][row]), variance, rtol=1e-5)


def test_ties_are_errors():
    assert top_1(np.zeros((3, 2)), np.zeros(3, int)) == 0.0
    assert top_1(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0, 0])) == 0.5


def test_the_common_k_is_the_best_of_all():
    similarity, uncertainty, labels = problem()
    scores = mean_similarities(similarity, uncertainty)
    best = choose_prompts(scores, labels)
    accuracy = [top_1(zero_shot_scores(scores, k), labels) for k in range(1, 6)]
    assert accuracy[best - 1] == max(accuracy) > accuracy[4]
    assert all(value < max(accuracy) for value in accuracy[best:]), "a larger K is as good"


def test_a_k_of_its_own_for_each_class_is_never_worse_and_cannot_be_bettered_alone():
    for seed in range(5):
        similarity, uncertainty, labels = problem(seed=seed)
        scores = mean_similarities(similarity, uncertainty)
        common = choose_prompts(scores, labels)
        own = choose_prompts(scores, labels, per_class=True, sweeps=20)

        def accuracy(kept, scores=scores, labels=labels):
            return top_1(zero_shot_scores(scores, kept), labels)

        assert accuracy(own) >= accuracy(common)
        for column, k in itertools.product(range(4), range(1, 6)):
            other = own.copy()
            other[column] = k
            assert accuracy(other) <= accuracy(own)
