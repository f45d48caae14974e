import numpy as np
import pytest
from matplotlib.patches import Rectangle

from zoo.report import crop_sheet, selection_accuracy_plot, training_curves


def test_accuracies_are_drawn_in_percent_by_threshold():
    figure = selection_accuracy_plot(
        [0.1, 0.2, 0.3], [0.5, 0.8, np.nan], [0.9, 1.0, np.nan], [10, 40, 0]
    )
    (axis,) = figure.axes
    crops, captions = axis.containers
    np.testing.assert_allclose(crops[0].get_ydata(), [50, 80])
    np.testing.assert_allclose(captions[0].get_ydata(), [90, 100])
    assert [label.get_text() for label in axis.get_xticklabels()] == [
        "≤ 10 %\nn = 10",
        "≤ 20 %\nn = 40",
        "≤ 30 %\nn = 0",
    ]
    with pytest.raises(ValueError, match=r"one length; received \[1, 2\]"):
        selection_accuracy_plot([0.1, 0.2], [0.5], [0.5], [1])


def test_the_sheet_shows_boxes_where_they_are_and_says_who_is_right():
    boxes = [[(1, 2, 3, 4), (5, 6, 2, 2), (1, 2, 6, 6)]] * 2
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
    lines = [text.split("\n") for text in words]
    assert [line[0][-1] + line[1][-1] for line in lines] == ["✓✗", "✗✓"]
    assert "u = −1.00" in lines[0][0]


def test_losses_of_other_sizes_have_a_logarithmic_axis():
    phases = ["sum_of_hinges"] * 2 + ["hardest"] * 2
    history = {"phase": phases, "loss": [7000.0, 3000.0, 60.0, 50.0], "kl": [1.0, 2.0, 3.0, 0.5]}
    loss, kl = training_curves(history).axes[:2]
    assert (loss.get_yscale(), kl.get_yscale()) == ("log", "linear")
    assert loss.get_ylim()[1] > 7000
