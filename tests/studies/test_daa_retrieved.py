"""Figure 1 (c) of DAA: which caption is shown, of runs that do differ."""

import numpy as np

from studies import daa_retrieved
from zoo.metrics.blocks import as_similarity


def test_the_caption_is_the_one_whose_runs_differ_most():
    """Three captions over five images; both runs have the annotated image first for 1 and 2."""
    meaning = np.array(
        [[1.0, 0.1, 0.0], [0.9, 1.0, 0.2], [0.0, 0.8, 1.0], [0.8, 0.1, 0.3], [0.1, 0.0, 0.2]]
    )
    plain = np.array(
        [[0.1, 0.2, 0.1], [0.9, 0.9, 0.2], [0.2, 0.3, 0.9], [0.3, 0.1, 0.8], [0.8, 0.8, 0.1]]
    )
    better = plain.copy()
    better[2, 1], better[4, 1] = 0.8, 0.3  # caption 1: the image that means the same comes second
    better[0, 0] = 1.0  # caption 0 differs more, but only one run has its image first
    runs = {"base": as_similarity(plain), "daa": as_similarity(better)}
    caption, found, values = daa_retrieved.choose(
        runs, as_similarity(meaning), lambda caption: [caption], shown=2
    )
    assert caption == 1
    assert {name: images.tolist() for name, images in found.items()} == {
        "base": [1, 4],
        "daa": [1, 2],
    }
    np.testing.assert_array_equal(values["daa"], meaning[[1, 2], 1])
