import numpy as np
import pytest
from matplotlib.patches import Rectangle

from studies.crop_figures import crop_figures, crop_sheet


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
