"""Every line of docs/start/first_hour.md runs, in the order of the page, on few small birds."""

import importlib
import pathlib
import re
import runpy
import shlex

import pytest

import zoo
from halo_search.cli import main as halo
from zoo.data import toy_birds

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "start" / "first_hour.md").read_text()
BLOCK = re.compile(r"```(python|bash|text)(?: title=\"(.*?)\")?\n(.*?)```", re.S)
SMALL = ["--dim=8", "--word-dim=8", "--max-words=8", "--image-size=32", "--log-variance-bias=-4"]
RUNS = ("runs/first", "runs/three_samples", "runs/softplus")


@pytest.fixture
def few_birds(tmp_path, monkeypatch):
    birds = toy_birds.generate(tmp_path / "birds", num_classes=8, images_per_class=4, image_size=32)
    monkeypatch.setattr(toy_birds, "generate", lambda *_, **__: birds)


@pytest.mark.very_slow
@pytest.mark.usefixtures("one_eagerly", "few_birds")
def test_the_page_runs_from_its_first_line_to_its_last(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "recipes"))
    (tmp_path / "recipes").mkdir()
    names = {"__name__": "__main__"}
    printed = ""
    for language, title, content in BLOCK.findall(PAGE):
        if title:
            (tmp_path / title).write_text(content)
        elif language == "python":
            exec(compile(content, "docs/start/first_hour.md", "exec"), names)
        elif language == "bash":
            for line in lines_of(content):
                run_command(line, monkeypatch)
        else:
            printed = capsys.readouterr().out
            assert printed.endswith(content)
    assert printed
    for run in RUNS:
        assert (tmp_path / run / "metrics.json").exists(), run
    for name in re.findall(r"^\| `([\w./]+)` \|", PAGE, re.M):
        assert (tmp_path / "runs" / "first" / name).exists(), name
    assert "±" in (tmp_path / "runs" / "methods" / "table.md").read_text()
    assert list((tmp_path / "served").rglob("saved_model.pb"))


def lines_of(block):
    """The commands of a block; a backslash continues one."""
    return block.replace("\\\n", " ").strip().splitlines()


def run_command(line, monkeypatch):
    """A line of the page in this process, with small sizes where it trains."""
    program, *words = shlex.split(line)
    if program == "halo":
        with pytest.raises(SystemExit) as ended:
            halo.main(words)
        assert not ended.value.code, line
    elif words[:2] == ["-m", "studies.ablations"]:
        monkeypatch.setattr(zoo.plots, "draw_run", lambda *run: None)  # drawn for the runs before
        sizes = " ".join(flag.lstrip("-") for flag in SMALL).split()
        assert words[2:].count("--seeds") == 1
        words.remove("2")  # two of the three seeds
        importlib.import_module("studies.ablations").main([*words[2:], "--also", *sizes])
    elif pathlib.Path(words[0]).exists():  # the page's own file
        runpy.run_path(words[0])["main"]([*SMALL, *words[1:]])
    else:
        importlib.import_module(pathlib.Path(words[0]).stem).main([*SMALL, *words[1:]])


def test_its_commands_are_of_this_checkout():
    """The quick half: recipes, studies and commands that the page names are there."""
    commands = [
        shlex.split(line)
        for language, _, content in BLOCK.findall(PAGE)
        if language == "bash"
        for line in lines_of(content)
    ]
    assert len(commands) == 6
    written = {title for _, title, _ in BLOCK.findall(PAGE) if title}
    for program, *words in commands:
        if program == "halo":
            assert words[0] in halo.COMMANDS
        elif words[0] != "-m":
            assert words[0] in written or (ROOT / words[0]).exists(), words
