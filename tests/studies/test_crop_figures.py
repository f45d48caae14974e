import numpy as np
import pytest

from studies.crop_figures import crop_figures


def rows():
    """Two thresholds with triplets and one without."""
    uncertainty = {"crops": {"a": -1.0, "c": 2.0}, "captions": {"a": 5.0, "c": 3.0}}
    found = [{"largest_area": area, "triplets": n} for area, n in ((0.1, 40), (0.2, 0), (0.3, 80))]
    for row, caption_c in ((found[0], 0.8), (found[2], 0.9)):
        row["selection"] = {"crop_a": 0.5, "crop_c": 0.6, "caption_a": 0.7, "caption_c": caption_c}
        row["mean_uncertainty"] = uncertainty
    return found


def test_figures_of_the_experiment_say_what_the_rows_do():
    figures = crop_figures(rows())
    assert list(figures) == ["selection_accuracy", "mean_uncertainty"]
    (axis,) = figures["selection_accuracy"].axes
    drawn = {c.get_label(): c[0].get_ydata() for c in axis.containers}
    expected = {"crop A": 50, "crop C": 60, "caption A": 70, "caption C": [80, 90]}
    assert set(drawn) == set(expected)
    for query, value in expected.items():
        np.testing.assert_allclose(drawn[query], value)
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["≤ 10 %\nn = 40", "≤ 30 %\nn = 80"]
    crops, captions = figures["mean_uncertainty"].axes
    assert [container[0].get_ydata()[0] for container in crops.containers] == [-1, 2]
    assert [container[0].get_ydata()[0] for container in captions.containers] == [5, 3]
    points = crop_figures([{k: v for k, v in row.items() if "unc" not in k} for row in rows()])
    assert list(points) == ["selection_accuracy"]
    with pytest.raises(ValueError, match="triplets at some area"):
        crop_figures(rows()[1:2])
