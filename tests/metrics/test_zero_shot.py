import itertools

import numpy as np
import pytest

from zoo.data.prompts import class_prompts, spoken, templates
from zoo.metrics.zero_shot import choose_prompts, top_1, zero_shot_scores


def problem(images=60, classes=4, prompts=5, seed=0):
    """Uncertain prompts are noise."""
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
    for sentence in ("no place", "{} two {}"):
        with pytest.raises(ValueError, match=r"`sentences` must have one \{\} each"):
            class_prompts(["a"], [sentence])


@pytest.mark.parametrize("kept", [None, 2, [1, 2, 3, 5]])
def test_scores_are_means_over_the_most_certain_prompts(kept):
    similarity, uncertainty, _ = problem()
    scores = zero_shot_scores(similarity, uncertainty, kept)
    counts = np.broadcast_to(5 if kept is None else kept, (4,))
    for column, count in enumerate(counts):
        chosen = np.argsort(uncertainty[column])[:count]
        expected = similarity[:, column, chosen].mean(axis=1)
        np.testing.assert_allclose(scores[:, column], expected)


def test_ties_are_errors():
    assert top_1(np.zeros((3, 2)), np.zeros(3, int)) == 0.0
    assert top_1(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0, 0])) == 0.5


def test_the_common_k_is_the_best_of_all():
    similarity, uncertainty, labels = problem()
    best = choose_prompts(similarity, uncertainty, labels)
    accuracy = [top_1(zero_shot_scores(similarity, uncertainty, k), labels) for k in range(1, 6)]
    assert accuracy[best - 1] == max(accuracy) > accuracy[4]
    assert all(value < max(accuracy) for value in accuracy[best:]), "a larger K is as good"


def test_a_k_of_its_own_for_each_class_is_never_worse_and_cannot_be_bettered_alone():
    for seed in range(5):
        similarity, uncertainty, labels = problem(seed=seed)
        common = choose_prompts(similarity, uncertainty, labels)
        own = choose_prompts(similarity, uncertainty, labels, per_class=True, sweeps=20)

        def accuracy(kept, data=(similarity, uncertainty, labels)):
            return top_1(zero_shot_scores(*data[:2], kept), data[2])

        assert accuracy(own) >= accuracy(common)
        for column, k in itertools.product(range(4), range(1, 6)):
            other = own.copy()
            other[column] = k
            assert accuracy(other) <= accuracy(own)


def test_wrong_shapes_are_named():
    similarity, uncertainty, labels = problem()
    with pytest.raises(ValueError, match="`similarity`"):
        zero_shot_scores(similarity, uncertainty.T)
    with pytest.raises(ValueError, match="`kept`"):
        zero_shot_scores(similarity, uncertainty, 6)
    with pytest.raises(ValueError, match="`labels`"):
        choose_prompts(similarity, uncertainty, labels[:5])


def test_clips_templates_are_there_by_name():
    clip = templates("clip")
    assert len(set(clip)) == 80
    assert all(sentence.count("{}") == 1 for sentence in clip)
    assert clip[0] == "a photo of a {}."
    assert {"itap of my {}.", "a photo of one {}.", "a origami {}."} <= set(clip)
    with pytest.raises(ValueError, match="bert"):
        templates("bert")
