"""Pages and cards show the figures of the kept results."""

import pytest

from tools import figures
from zoo.errors import InputError


def test_pages_and_cards_are_those_of_the_kept_results():
    for path, text in figures.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make figures`"


def test_a_page_without_its_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- presets: begin -->\nold\n<!-- presets: end -->\nbelow\n")
    assert figures.between(page, "presets", "new\n") == (
        "<!-- presets: begin -->\nnew\n<!-- presets: end -->\nbelow\n"
    )
    with pytest.raises(InputError, match="expected the lines <!-- runs: begin -->"):
        figures.between(page, "runs", "new\n")
