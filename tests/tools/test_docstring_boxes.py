import pytest

griffe = pytest.importorskip("griffe")  # of the site's packages

from tools.docstring_boxes import BOXES, LISTS, DocstringBoxes, boxed  # noqa: E402


def boxes(text):
    """Headings and contents of a docstring's boxes, as the site has them."""
    sections = griffe.Docstring(boxed(text)).parse("google")
    return {s.title: s.value.contents for s in sections if s.kind.value == "admonition"}


@pytest.mark.parametrize("name", BOXES)
def test_a_part_is_a_box_however_it_is_written(name):
    for text in (
        f"It does.\n\n{name}: one line.\n\nMore.",
        f"It does.\n\n{name}:\n    one line.\n\nMore.",
    ):
        assert boxes(text) == {name: "one line."}
    for continued in ("    its section 3.", "its section 3."):
        found = boxes(f"It does.\n\n{name}: a paper, see\n{continued}")
        assert found == {name: "a paper, see\nits section 3."}


@pytest.mark.parametrize("name", LISTS)
def test_what_a_box_names_is_a_list(name):
    text = f"It does.\n\n{name}:\n    images: points,\n        `(N, dim)`.\n    mask: or None."
    contents = boxes(text)[name]
    assert contents.splitlines() == ["- `images`: points,", "    `(N, dim)`.", "- `mask`: or None."]


def test_no_box_of_a_loss_loses_its_heading():
    module = griffe.load("zoo.losses.matching", extensions=griffe.Extensions(DocstringBoxes()))
    sections = module["MatchingCrossentropy"].docstring.parse("google")
    titles = [section.title for section in sections if section.kind.value == "admonition"]
    assert titles == ["Relations", "Reference", "Released code differs"]
