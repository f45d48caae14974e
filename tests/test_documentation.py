"""Every line of docs/questions.md and the README's code run."""

import dataclasses
import importlib
import pathlib
import re
import shlex

import pytest

from zoo import cli

ROOT = pathlib.Path(__file__).parent.parent
CODE = re.compile(r"```python\n(.*?)```", re.S)
LINES = CODE.findall((ROOT / "docs" / "questions.md").read_text())


@pytest.mark.parametrize("code", LINES, ids=lambda code: code.split(";")[-1].strip()[:60])
def test_answers_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/questions.md", "exec"), {})


@pytest.mark.slow
def test_the_readmes_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(CODE.findall((ROOT / "README.md").read_text()))
    shorter = code.replace("steps_per_epoch=60, epochs=10", "steps_per_epoch=1, epochs=1")
    assert shorter != code
    names = {}
    exec(compile(shorter, "README.md", "exec"), names)
    vague, exact = names["zoo"].from_preset("toy_birds_pcme").uncertainty(names["captions"])
    assert vague > exact
    assert names["model"].similarity(names["images"], names["captions"]).shape == (480, 2)


def test_the_readmes_recipes_have_a_run_folder_each():
    commands = re.findall(r"^python recipes/(\w+)\.py(.*)$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) >= 4
    folders = {}
    for name, flags in commands:
        settings = cli.parse(
            importlib.import_module(name).Settings, shlex.split(flags, comments=True)
        )
        folders.setdefault(settings.out, []).append((name, dataclasses.replace(settings, out=None)))
    for folder, runs in folders.items():
        assert len(runs) == 1 or all(run == runs[0] for run in runs), folder


def test_readme_names_things_that_exist():
    import zoo
    import zoo.data

    text = (ROOT / "README.md").read_text()
    for name in set(re.findall(r"\bzoo((?:\.[a-z_A-Z0-9]+)+)", text)):
        thing = zoo
        for part in name.strip(".").split("."):
            thing = getattr(thing, part)
    for path in re.findall(r"\]\((docs/[^)#]+)\)", text):
        assert (ROOT / path).exists(), path


def test_the_models_page_is_that_of_the_kept_runs():
    from zoo.files import RunFolder
    from zoo.report import models_page

    path = ROOT / "docs" / "models.md"
    kept = [RunFolder.existing(run) for run in sorted((ROOT / "docs" / "runs").iterdir())]
    tables = models_page.page(kept)
    assert tables in path.read_text(), models_page.__doc__
