"""One curve a system, of several seeds."""

import numpy as np
import pytest

from zoo import report


def history(start):
    values = np.array([np.nan, start, np.nan, start + 4.0])
    return {"loss": np.ones(4), "val_i2t_asp": values, "val_t2i_asp": values + 1}


def test_a_curve_is_the_mean_over_seeds_where_it_was_measured():
    figure = report.curves_over_seeds(
        {"base": [history(50.0), history(52.0)], "other": [history(60.0)], "none": [{"loss": [1]}]}
    )
    first, second = figure.axes
    lines = {line.get_label(): line.get_data() for line in first.lines}
    assert set(lines) == {"base", "other"}
    np.testing.assert_array_equal(lines["base"], [[2, 4], [51.0, 55.0]])
    np.testing.assert_array_equal(second.lines[0].get_ydata(), [52.0, 56.0])
    assert first.get_title(loc="left") == "image → text"


def test_without_curves_it_is_refused():
    with pytest.raises(ValueError, match="val_i2t_asp"):
        report.curves_over_seeds({"base": [{"loss": [1]}]})
