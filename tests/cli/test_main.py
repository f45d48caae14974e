"""The console command: what a subcommand is, what it says of wrong ones, and when."""

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

import halo_search.cli.main as halo
import zoo
from halo_search.cli import public
from halo_search.cli.main import recipes
from halo_search.cli.search import main as search
from processes import python

ROOT = Path(halo.__file__).parents[2]


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
    import halo_search.cli.main

    def called(*words):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            try:
                halo_search.cli.main.main(words)
            except SystemExit as ended:
                return ended.code, shown.getvalue()

    for words, code in (["--help"], 0), (["--version"], 0), (["train"], 0), (["reprot"], 2):
        assert called(*words)[0] == code, words
    search = ("encode", "index", "build", "update", "query", "serve")
    commands = [[name] for name in halo_search.cli.main.COMMANDS]
    for words in [*commands, *(["search", name] for name in search), ["train", "pcme_cub"]]:
        assert called(*words, "--help")[1].startswith("usage: halo "), words
    heavy = {"zoo", "tensorflow", "keras", "gradio", "matplotlib", "fastapi", "lancedb"}
    print(sorted(heavy & set(sys.modules)))
"""


def test_help_does_not_wait_for_tensorflow():
    """Nor does what runs nothing; what reads flags imports nothing that takes seconds."""
    assert python("-c", WITHOUT, cwd=ROOT, PYTHONPATH=str(ROOT)).stdout == "[]\n"


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_the_help_lists_every_command(argv, capsys):
    assert call(*argv) == 0
    text = capsys.readouterr().out
    rows = [line for line in text.splitlines() if line.startswith("  ")]
    assert len({row.rindex("  ") for row in rows}) == 1  # where the column of texts begins
    assert [row.split()[0] for row in rows] == [
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
    assert len(rows) > 5
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


BUILD = ("search", "build", str(ROOT / "halo_search" / "photos"), "OUT", "--model", "photos_pfe")
FOLDER = "no such folder of images, or CSV or TSV file"
MODEL = "no such model: 'phtos_pfe'; a model must be one of the presets "
SETUP = "nowhere/search.json: there is no such file; expected what `build` wrote"
WRONG = {
    ("search", "build", "nowhere", "OUT", "--model", "photos_pfe"): f"nowhere: {FOLDER}",
    (*BUILD[:-1], "phtos_pfe"): f"--model: {MODEL}",
    (*BUILD, "--pairs", "nowhere"): "--pairs nowhere: no such file or folder",
    (*BUILD, "--probes", "nowhere"): "--probes nowhere: no such run folder or preset",
    ("search", "update", "nowhere"): SETUP,
    ("search", "query", "nowhere", "dog"): SETUP,
    ("search", "serve", "nowhere"): SETUP,
    ("demo", "--photos", "nowhere"): f"nowhere: {FOLDER}",
    ("demo", "phtos_pfe"): MODEL,
    ("evaluate", "nowhere.npz"): "nowhere.npz: there is no such file",
    ("evaluate", "--model", "photos_pfe", "--pairs", "nowhere"): "--pairs nowhere: no such file",
    ("export", "phtos_pfe", "OUT"): MODEL,
    ("report", "nowhere"): "no such run folder: nowhere",
    ("confidence", "probes", "nowhere"): "no such run folder: nowhere",
    ("train", "pcme_cub", "--data-dir", "nowhere"): "--data-dir nowhere: no such file or folder",
    ("train", "own_pairs", "--data-dir=nowhere"): "--data-dir nowhere: no such file or folder",
}
RUN = """if True:
    import contextlib, io, json, sys
    for name in ("zoo", "keras", "tensorflow", "gradio"):
        sys.modules[name] = None  # importing it raises ImportError
    import halo_search.cli.main
    for words in json.loads(sys.argv[1]):
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            try:
                halo_search.cli.main.main(words)
            except SystemExit as ended:
                print(json.dumps([ended.code, shown.getvalue()]))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """`{words: [exit code, standard error]}`, all of one process in an empty folder."""
    empty = tmp_path_factory.mktemp("empty")
    done = python("-c", RUN, json.dumps([*WRONG]), cwd=empty, PYTHONPATH=str(ROOT))
    return dict(zip(WRONG, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_mistyped_name_ends_before_keras_is_imported(said, words):
    code, error = said[words]
    assert code == 2
    assert error.startswith(f"error: {WRONG[words]}")
    assert error.count("\n") == 1


def test_the_nearest_preset_is_named(said):
    assert said["demo", "phtos_pfe"][1].endswith("; did you mean 'photos_pfe'?\n")
