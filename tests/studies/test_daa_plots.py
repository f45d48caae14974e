"""Figures of DAA: one curve a system; precision at a depth; pairs above."""

import numpy as np

from studies.daa_plots import asp_curves, positives_plot, precision_at_plot


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
    for depths in ([10, 100], {"i2t": [10, 100], "t2i": [5, 20]}):
        figure = precision_at_plot(depths, found)
        for axis, side in zip(figure.axes, ("i2t", "t2i"), strict=True):
            places = depths[side] if isinstance(depths, dict) else depths
            for line, system in zip(axis.lines, found, strict=True):
                np.testing.assert_allclose(line.get_xdata(), places)
                np.testing.assert_allclose(line.get_ydata(), 100 * np.array(found[system][side]))


def test_pairs_above_a_threshold_are_drawn_beside_what_is_annotated():
    (axis,) = positives_plot([0.1, 0.5, 0.9], [900, 40, 0], 200).axes
    counts, annotated = axis.lines
    np.testing.assert_allclose(counts.get_ydata(), [900, 40, 0.5])  # none: the axis' foot
    assert set(annotated.get_ydata()) == {200}
