import numpy as np
import pytest
from matplotlib.patches import Rectangle

from studies.crop_figures import crop_figures, crop_sheet


def rows(shift=0.0):
    """Two thresholds with triplets and one without."""
    selection = {"crop_a": 0.5, "crop_c": 0.6, "caption_a": 0.7, "caption_c": 0.8 - shift}
    uncertainty = {
        "crops": {"a": -1.0 + shift, "c": 2.0},
        "captions": {"a": 5.0 + shift, "c": 3.0},
    }
    more = {"crops": 0.25, "captions": 0.75 + shift}
    full = {"selection": selection, "mean_uncertainty": uncertainty, "more_uncertain": more}
    areas = {0.1: 40, 0.2: 0, 0.3: 80}
    return [{"largest_area": a, "triplets": n} | (full if n else {}) for a, n in areas.items()]


def test_figures_of_the_experiment_say_what_the_rows_do():
    figures = crop_figures(rows())
    assert list(figures) == ["selection_accuracy", "mean_uncertainty", "more_uncertain"]
    (axis,) = figures["selection_accuracy"].axes
    drawn = {c.get_label(): c[0].get_ydata() for c in axis.containers}
    expected = {"crop A": 50, "crop C": 60, "caption A": 70, "caption C": 80}
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


def test_seeds_are_drawn_as_their_mean_and_deviation():
    (axis,) = crop_figures(rows(), rows(0.1), rows(0.2))["more_uncertain"].axes
    _, captions = axis.containers
    np.testing.assert_allclose(captions[0].get_ydata(), 85)
    low, high = captions[2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose([low, high], [75, 95])
    assert "3 seeds" in axis.get_title(loc="left")
    with pytest.raises(ValueError, match="same areas"):
        crop_figures(rows(), rows()[:2])
    with pytest.raises(ValueError, match="triplets at some area"):
        crop_figures(rows()[1:2])


def test_the_sheet_shows_boxes_where_they_are_and_says_who_is_right():
    boxes = [[(1, 2, 3, 4), (5, 6, 5, 2), (1, 2, 9, 6)]] * 2  # B and C end with the picture
    figure = crop_sheet(
        np.zeros((2, 10, 10, 3)),
        boxes,
        [("a bird", "a bird and a tree")] * 2,
        np.array([[-1.0, 2.0], [2.0, -1.0]]),
        np.array([[-1.0, 2.0], [2.0, -1.0]]),
    )
    pictures, words = figure.axes[::2], [axis.texts[0].get_text() for axis in figure.axes[1::2]]
    for axis in pictures:
        drawn = [p for p in axis.patches if isinstance(p, Rectangle)]
        found = [(*p.get_xy(), p.get_width(), p.get_height()) for p in drawn]
        np.testing.assert_allclose(np.array(found), np.array(boxes[0]) - (0.5, 0.5, 0, 0))
        letters = [
            text for text in axis.texts if text.get_annotation_clip() is False
        ]  # so all are drawn
        assert [text.get_text() for text in letters] == ["A", "B", "C"]
        assert letters[1].xy == (9.5, 5.5)
    lines = [text.split("\n") for text in words]
    assert [line[0][-1] + line[1][-1] for line in lines] == ["✓✗", "✗✓"]
    assert "u = −1.00" in lines[0][0]
