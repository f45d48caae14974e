"""A figure on a dark ground: neutral colours are exchanged, pixels and palette stay."""

import numpy as np
from matplotlib.colors import to_hex
from PIL import Image

from tools import dark_pictures, first_screen
from zoo.plots.style import BLUE, GROUND, INK, PALETTE, RIGHT, new_figure, styled


@styled
def figure():
    drawn = new_figure(2.0, 2.0)
    axis = drawn.subplots()
    axis.plot([0, 1], [0, 1], color=PALETTE[1], marker="o", markerfacecolor="white", label="one")
    axis.errorbar([0, 1], [1, 0], [0.1, 0.1], color=PALETTE[0])
    axis.set_title("right", color=RIGHT)
    axis.imshow(np.full((2, 2, 3), 255, np.uint8), extent=(0, 1, 0, 1))
    axis.legend()
    return drawn


def test_neutral_colours_are_exchanged(tmp_path):
    drawn = figure()
    light, other = first_screen.save_both(drawn, tmp_path / "plot.png", dpi=50)
    assert other == tmp_path / "plot_dark.png"
    with Image.open(light) as first, Image.open(other) as second:
        assert first.getpixel((0, 0))[:3] == (255, 255, 255)
        assert to_hex(np.array(second.getpixel((0, 0))[:3]) / 255) == GROUND
    (axis,) = drawn.axes
    line = axis.lines[0]
    assert to_hex(line.get_color()) == PALETTE[1].lower()
    assert to_hex(line.get_markerfacecolor()) == GROUND
    assert to_hex(axis.xaxis.label.get_color()) == INK
    assert to_hex(axis._left_title.get_color()) == "#35c79a"
    assert to_hex(axis.collections[0].get_edgecolor()[0]) == BLUE
    assert (axis.images[0].get_array() == 255).all()


def test_a_page_shows_the_picture_of_its_scheme(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a_dark.png").touch()
    html = '<img alt="x" src="../images/a.png" /> <img alt="y" src="../images/b.png" />'
    found = dark_pictures.on_page_content(html, None, {"docs_dir": str(tmp_path)}, None)
    assert found == (
        '<img alt="x" src="../images/a.png#only-light" />'
        '<img alt="x" src="../images/a_dark.png#only-dark" />'
        ' <img alt="y" src="../images/b.png" />'
    )
