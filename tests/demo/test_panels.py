"""What the page shows of models of points and of sets, without a browser."""

import numpy as np
import pytest
from PIL import Image

from demo import cards, elements_panel, map_plot, page, pictures


@pytest.mark.parametrize("kind", ["points", "sets"])
def test_the_map_marks_points_and_every_element_of_sets(kind, request):
    gallery = request.getfixturevalue(kind)
    groups = map_plot.items_of(gallery, classes=2)
    drawing = map_plot.figure(gallery, groups)
    per_item = 3 if kind == "sets" else 1
    shown = [len(part) for _, images, captions in groups for part in (images, captions)]
    assert [len(trace.x) for trace in drawing.data] == [per_item * count for count in shown]
    assert all(trace.mode == "markers" for trace in drawing.data)  # nothing has an ellipse
    _, images, captions = groups[0]
    said = [words[2] for words in drawing.data[0].customdata]
    expected = [gallery.image_names[row] for row in images for _ in range(per_item)]
    assert all(one.startswith(name) for one, name in zip(said, expected, strict=True))
    alone = map_plot.figure(gallery, groups, with_captions=False)
    assert len(alone.data) == len(groups)
    text = gallery.take("captions", captions[:1])
    asked = map_plot.figure(gallery, groups, query=("a bird", text)).data[-1]
    assert asked.customdata[0][2].startswith("Your text: a bird")
    assert len(asked.x) == per_item


def test_padded_elements_are_not_on_the_map(sets):
    groups = map_plot.items_of(sets, classes=1)
    mask = np.ones((1, 3), bool)
    mask[0, 1] = False
    query = {**sets.take("captions", [0]), "mask": mask}
    assert len(map_plot.figure(sets, groups, query=("", query)).data[-1].x) == 2


def test_elements_of_a_picture_are_shown_where_they_look(sets, photo):
    built = page.build(sets)
    try:
        events = [event.fn for event in built.fns.values()]
        of_panel = [fn for fn in events if fn and fn.__module__ == elements_panel.__name__]
        shown = of_panel[0](str(photo))
        found = built.service.describe_elements(str(photo))
        assert shown.count("<img") == len(found) == 3
        for one in found:
            assert f"(cosine {cards.number(one['cosine'])})" in shown
            assert one["caption"] is not None
    finally:
        built.close(verbose=False)


def test_a_picture_is_bright_where_an_element_attends():
    pixels, weights = np.full((64, 64, 3), 200, "uint8"), np.zeros((4, 4))
    weights[0, 3] = 1.0
    blended, said, words = pictures.attended(pixels, weights, "below")
    shown = np.asarray(blended if isinstance(blended, np.ndarray) else Image.fromarray(blended))
    size = len(shown) // 4
    assert shown[:size, -size:].mean() > shown[-size:, :size].mean() + 50
    assert "most at the top, far right" in said
    assert words == "below"
