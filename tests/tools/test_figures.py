"""Pages and cards show the figures of the kept results."""

from tools import figures


def test_pages_and_cards_are_those_of_the_kept_results():
    for path, text in figures.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make figures`"
