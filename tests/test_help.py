"""Help without TensorFlow: what reads flags imports nothing that takes seconds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import halo_zoo
from zoo import similarities
from zoo.cli import bounds
from zoo.similarities import by_name

ROOT = Path(halo_zoo.__file__).parent.parent
CODE = """if True:
    import contextlib, io, sys
    import halo_zoo
    shown = io.StringIO()
    for words in {commands!r}:
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            halo_zoo.main([*words, "--help"])
    assert shown.getvalue().count("usage: halo ") == {count}, shown.getvalue()
    heavy = {{"tensorflow", "keras", "faiss", "gradio", "matplotlib", "scipy"}}
    print(sorted(heavy & set(sys.modules)))
"""
SEARCH = ("encode", "index", "build", "update", "query", "serve")


def test_no_help_imports_tensorflow():
    commands = [[], *([name] for name in halo_zoo.COMMANDS), *(["search", name] for name in SEARCH)]
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(commands=commands, count=len(commands))],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stdout == "[]\n", done.stderr[-2000:]


def test_the_names_that_help_lists_are_the_library_s():
    assert bounds.SIMILARITIES == similarities.NAMES
    with pytest.raises(ValueError, match="must be one of"):
        by_name.check_name("nothing")
