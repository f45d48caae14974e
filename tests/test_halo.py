"""The console command: which command line a subcommand is, and what it says of a wrong one."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import halo_zoo as halo
import zoo
from halo_zoo import recipes
from halo_zoo.search import main as search
from zoo import similarities
from zoo.cli import bounds, public
from zoo.embeddings import GAUSSIAN, POINT, SET
from zoo.similarities import by_name

ROOT = Path(halo.__file__).parent.parent


@pytest.fixture(autouse=True)
def _process(monkeypatch):
    """`halo` changes the module path and the arguments of its process, which here is pytest's."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["halo"])


def call(*argv):
    with pytest.raises(SystemExit) as ended:
        halo.main(argv)
    return ended.value.code


WITHOUT = """if True:
    import contextlib, io, sys
    import halo_zoo

    def called(*words):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            try:
                halo_zoo.main(words)
            except SystemExit as ended:
                return ended.code, shown.getvalue()

    for words, code in (["--help"], 0), (["--version"], 0), (["train"], 0), (["reprot"], 2):
        assert called(*words)[0] == code, words
    assert not {"zoo", "keras", "tensorflow", "numpy"} & set(sys.modules)
    search = ("encode", "index", "build", "update", "query", "serve")
    for words in *([name] for name in halo_zoo.COMMANDS), *(["search", name] for name in search):
        assert called(*words, "--help")[1].startswith("usage: halo "), words
    heavy = {"tensorflow", "keras", "faiss", "gradio", "matplotlib", "scipy"}
    print(sorted(heavy & set(sys.modules)))
"""


def test_help_does_not_wait_for_tensorflow():
    """Nor does what runs nothing; what reads flags imports nothing that takes seconds."""
    words = [sys.executable, "-c", WITHOUT]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr[-2000:]


def test_the_names_that_help_lists_are_the_library_s():
    assert bounds.SIMILARITIES == similarities.NAMES
    for kind in (POINT, GAUSSIAN, SET):
        ranking = similarities.names(lambda cls, kind=kind: cls.space and kind in cls.embeddings)
        assert bounds.RANKING[kind] == tuple(ranking)
    with pytest.raises(ValueError, match="must be one of"):
        by_name.check_name("nothing")


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_the_help_lists_every_command(argv, capsys):
    assert call(*argv) == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == [
        "train",
        "evaluate",
        "confidence",
        "report",
        "search",
        "export",
        "demo",
    ]


def test_the_version_is_that_of_the_package(capsys):
    assert call("--version") == 0
    assert capsys.readouterr().out == f"halo-zoo {zoo.__version__}\n"
    assert importlib.metadata.version("halo-zoo") == zoo.__version__


def test_recipes_are_listed_with_what_they_are(capsys):
    assert call("train") == 0
    text = capsys.readouterr().out
    assert "PCME on CUB-200-2011, or on Toy Birds when no data are given.\n" in text
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert sorted(names) == sorted(recipes())  # each once, below its paper
    assert "PCME++ (ICLR 2024)\n  pcmepp_coco " in text
    assert not {"pcmepp_settings", "__init__"} & {*names}  # modules that recipes share


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (["train", "pcme_cub"], "halo train pcme_cub"),
        (["train", "pcme_2d"], "halo train pcme_2d"),  # imports a sibling
        *([[name], f"halo {name}"] for name in halo.COMMANDS if name != "train"),
    ],
)
def test_a_command_has_its_own_help(argv, program, capsys):
    assert call(*argv, "--help") == 0
    assert capsys.readouterr().out.startswith(f"usage: {program} [-h]")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["reprot"], "unknown command 'reprot'; the nearest is 'report' (halo --help lists all)"),
        (
            ["train", "pcme_cup"],
            "unknown recipe 'pcme_cup'; the nearest is 'pcme_cub' (halo train lists all)",
        ),
        (["train", "pcme_cub", "--dims", "3"], "did you mean --dim?"),
        (["export", "run"], "the following arguments are required: OUT"),
        (["demo", "nowhere"], "'nowhere'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(argv, says, capsys):
    assert call(*argv) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert says in error


def test_public_models_are_told_as_their_page_tells_them(capsys):
    assert public.table(in_markdown=True) in (ROOT / "docs/models/hosted.md").read_text("utf-8")
    search(["models", "--json"])
    rows = json.loads(capsys.readouterr().out)
    search(["models"])
    told = capsys.readouterr().out
    assert all(row["name"] in told and row["source"] in told for row in rows)
    for row in rows:  # no figure without the page that it is from
        assert bool(row["source"]) == bool(row["coco_t2i"])


def test_the_names_and_sizes_of_public_models_are_those_of_kerashub():
    models = pytest.importorskip("keras_hub").models
    families = models.CLIPBackbone, models.SigLIPBackbone, models.MetaCLIP2Backbone
    known = {name: facts for one in families for name, facts in one.presets.items()}
    for row in public.public_models():
        if "://" not in row["name"]:
            assert int(row["parameters"]) == round(known[row["name"]]["metadata"]["params"] / 1e6)
