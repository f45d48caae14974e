"""Bars of how far encoding is. Imported where a bar begins: a question needs no Rich."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text


def progress_bar(is_shown: bool = True) -> Progress:
    """A bar of items, with items per second and the time left."""
    columns = TextColumn("{task.description}"), BarColumn(), _Done(), TimeRemainingColumn()
    # A batch of a slow model takes longer than the default 30 s over which speed is estimated.
    return Progress(*columns, disable=not is_shown, speed_estimate_period=300)


class _Done(MofNCompleteColumn):
    """How many of how many, and how many a second."""

    def render(self, task):
        speed = task.finished_speed or task.speed
        return super().render(task) + Text("" if speed is None else f" {speed:,.1f}/s")
