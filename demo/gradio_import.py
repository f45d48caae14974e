"""Imports Gradio, as `gr`: without the stubs that it writes for editors."""

import contextlib
import inspect

from halo_search.errors import require


@contextlib.contextmanager
def _without_stubs():
    """Gradio's import parses the source of each component to write a `.pyi` file beside it, which
    takes a third of the import; components without a file are passed over."""
    file_of = inspect.getfile

    def getfile(thing):
        if getattr(thing, "__module__", "").startswith("gradio."):
            raise OSError("no stub for this component")
        return file_of(thing)

    inspect.getfile = getfile
    try:
        yield
    finally:
        inspect.getfile = file_of


with _without_stubs():
    gr = require("gradio", extra="demo")
