import pytest

griffe = pytest.importorskip("griffe")  # of the site's packages

from tools.docstring_boxes import DocstringBoxes  # noqa: E402


def test_no_box_of_a_loss_loses_its_heading():
    module = griffe.load("zoo.losses.matching", extensions=griffe.Extensions(DocstringBoxes()))
    sections = module["MatchingCrossentropy"].docstring.parse("google")
    titles = [section.title for section in sections if section.kind.value == "admonition"]
    assert titles == ["Relations", "Reference", "Released code differs"]
