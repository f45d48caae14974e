"""Rows of a table of what must hold."""

from typing import NamedTuple

COLUMNS = "what", "measured", "must", "holds"


class Row(NamedTuple):
    """A row, as text."""

    what: str
    measured: str
    must: str = ""
    holds: str = ""  # "yes" or "no"; empty where nothing must hold

    @classmethod
    def of(cls, what, measured, must="", holds=None):
        """A row of a number or text, and of whether it holds."""
        text = measured if isinstance(measured, str) else f"{measured:.3f}"
        return cls(what, text, must, "" if holds is None else "yes" if holds else "no")
