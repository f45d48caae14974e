"""What a command writes on the terminal before its answer: nothing of TensorFlow's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zoo.quiet import NOTES

ROOT = Path(__file__).parents[1]
ENCODE = """if True:
    from zoo.cli import run

    def main():
        import zoo
        print(zoo.from_preset("toy_birds_pfe").encode_captions(["red"]).batch_shape)
        raise zoo.errors.InputError("no such run folder: nowhere")

    run(main)
"""


def run(code, *arguments, **variables):
    """A process of its own, as from a terminal on a host without GPUs, where the most is said."""
    hidden = ("TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
        check=False,
    )


@pytest.mark.parametrize("level", [None, pytest.param("2", marks=pytest.mark.very_slow)])
def test_a_command_s_standard_error_is_empty_but_for_its_own_error(level):
    found = run(ENCODE, **({"TF_CPP_MIN_LOG_LEVEL": level} if level else {}))
    assert found.returncode == 2
    assert found.stdout == "(1,)\n"
    assert found.stderr == "error: no such run folder: nowhere\n"


@pytest.mark.very_slow  # the command above imports as much
def test_a_recipe_that_runs_as_a_script_is_quiet():
    recipe = str(ROOT / "recipes" / "pcme_cub.py")
    found = run(f"import runpy; runpy.run_path({recipe!r}, None, '__main__')", "--help")
    assert found.returncode == 0
    assert "--learning-rate" in found.stdout
    assert found.stderr == ""


@pytest.mark.very_slow  # an error after all that TensorFlow says is above
def test_an_error_of_a_command_is_one_line():
    found = run("import halo_zoo; halo_zoo.main(['report', 'nowhere'])")
    assert found.returncode == 2
    assert found.stderr == "error: no such run folder: nowhere\n"


@pytest.mark.parametrize("backend", ["foo", pytest.param("mlx", marks=pytest.mark.very_slow)])
def test_a_backend_that_is_not_there_is_one_line(backend):
    found = run("import halo_zoo; halo_zoo.main(['train', 'pcme_cub'])", KERAS_BACKEND=backend)
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert line.startswith("error: KERAS_BACKEND")
    assert backend in line


@pytest.mark.very_slow  # the filter itself is asked below
def test_who_asks_for_the_notes_gets_them():
    found = run("import zoo; zoo.models", TF_CPP_MIN_LOG_LEVEL="0")
    lines = found.stderr.encode().splitlines()
    assert any(NOTES.match(line) for line in lines), found.stderr


def test_what_else_is_written_passes_even_before_a_crash():
    code = """if True:
        import os, sys
        sys.path.insert(0, "zoo")
        import quiet
        with quiet.without_notes():
            os.write(2, b"I0000 00:00:1795455073.446498 5045 port.cc:153] oneDNN\\n")
            os.write(2, b"F0000 00:00:1795455073.446498 5045 port.cc:153] no AVX\\n")
            print("a line of Python's", file=sys.stderr)
            os.write(2, b"without an end")
            CRASH
        print("after", file=sys.stderr)
    """
    own = ["F0000 00:00:1795455073.446498 5045 port.cc:153] no AVX", "without an end"]
    expected = {
        "os.abort()": [],
        "pass": ["after"],
        "raise ImportError('why')": ["ImportError: why"],
    }
    for crash, last in expected.items():
        found = run(code.replace("CRASH", crash))
        assert (found.returncode == 0) == (crash == "pass")
        lines = found.stderr.replace("without an end", "without an end\n").splitlines()
        assert {*own, "a line of Python's", *last} <= set(lines), lines
        assert "oneDNN" not in found.stderr
        assert lines[-1:] == last or not last
