"""What the page shows of models of points and of sets, without a browser."""

import pytest

from demo import map_plot


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
