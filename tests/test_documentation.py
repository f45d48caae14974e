"""Every line of docs/questions.md runs, and the README's code is not older than the API."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
LINES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "questions.md").read_text(), re.S)


@pytest.mark.parametrize("code", LINES, ids=lambda code: code.split(";")[-1].strip()[:60])
def test_answers_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/questions.md", "exec"), {})


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
