"""Figures of DAA: one curve a system; precision at a depth; pairs above; which caption is shown."""

import numpy as np

from studies.daa_figures import asp_curves, choose, positives_plot, precision_at_plot
from zoo.metrics.blocks import as_similarity


def history(start):
    values = np.array([np.nan, start, np.nan, start + 4.0])
    return {"loss": np.ones(4), "val_i2t_asp": values, "val_t2i_asp": values + 1}


def test_a_curve_has_the_epochs_that_were_measured():
    figure = asp_curves({"base": history(50.0), "other": history(60.0), "none": {"loss": [1]}})
    first, second = figure.axes
    lines = {line.get_label(): line.get_data() for line in first.lines}
    assert set(lines) == {"base", "other"}
    np.testing.assert_array_equal(lines["base"], [[2, 4], [50.0, 54.0]])
    np.testing.assert_array_equal(second.lines[0].get_ydata(), [51.0, 55.0])
    assert first.get_title(loc="left") == "image → text"


def test_semantic_precision_has_an_axis_for_each_direction():
    found = {
        "DAA": {"i2t": [0.5, 0.6], "t2i": [0.3, 0.2]},
        "base": {"i2t": [0.4, 0.4], "t2i": [0.1, 0.1]},
    }
    depths = {"i2t": [10, 100], "t2i": [5, 20]}
    figure = precision_at_plot(depths, found)
    for axis, side in zip(figure.axes, ("i2t", "t2i"), strict=True):
        for line, system in zip(axis.lines, found, strict=True):
            np.testing.assert_allclose(line.get_xdata(), depths[side])
            np.testing.assert_allclose(line.get_ydata(), 100 * np.array(found[system][side]))


def test_pairs_above_a_threshold_are_drawn_beside_what_is_annotated():
    (axis,) = positives_plot([0.1, 0.5, 0.9], [900, 40, 0], 200).axes
    counts, annotated = axis.lines
    np.testing.assert_allclose(counts.get_ydata(), [900, 40, 0.5])  # none: the axis' foot
    assert set(annotated.get_ydata()) == {200}


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
    caption, found, values = choose(
        runs, as_similarity(meaning), lambda caption: [caption], shown=2
    )
    assert caption == 1
    assert {name: images.tolist() for name, images in found.items()} == {
        "base": [1, 4],
        "daa": [1, 2],
    }
    np.testing.assert_array_equal(values["daa"], meaning[[1, 2], 1])
