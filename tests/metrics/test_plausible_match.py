"""PMRP: against R-Precision of the written-out matrix, under symmetries, and at the edges."""

import numpy as np
import pytest

from zoo.metrics import blocks, plausible_match_r_precision, r_precision


@pytest.fixture
def scenes():
    rng = np.random.default_rng(0)
    labels = rng.random((15, 6)) < 0.25
    labels[[2, 9]] = False
    caption_image = rng.permutation(np.repeat(np.arange(15), 3))
    return rng.normal(size=(15, 45)), labels, caption_image


def test_pmrp_equals_r_precision_of_the_written_out_matrix(scenes):
    similarity, labels, caption_image = scenes
    results = plausible_match_r_precision(similarity, labels, caption_image)
    images = labels.any(axis=1)
    captions = images[caption_image]
    kept = similarity[images][:, captions]
    distance = (labels[:, None] != labels[caption_image][None]).sum(-1)[images][:, captions]
    matches = [distance <= threshold for threshold in (0, 1, 2)]
    assert results["i2t"] == pytest.approx(np.mean([r_precision(kept, m) for m in matches]))
    assert results["t2i"] == pytest.approx(np.mean([r_precision(kept.T, m.T) for m in matches]))
    assert results["images_left_out"] == (~images).sum() >= 2
    assert results["captions_left_out"] == (~captions).sum()


@pytest.mark.parametrize("block_bytes", [1, 4 * 4 * 45])
def test_pmrp_blocks_and_permutations(scenes, block_bytes, monkeypatch):
    similarity, labels, caption_image = scenes
    expected = pytest.approx(plausible_match_r_precision(similarity, labels, caption_image))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    again = plausible_match_r_precision(similarity, labels.astype(int), caption_image)
    assert again == expected
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(15), rng.permutation(45)
    moved = np.argsort(rows)[caption_image[columns]]
    shuffled = similarity[rows][:, columns] ** 3
    assert plausible_match_r_precision(shuffled, labels[rows], moved) == expected
