"""docs/quickstart.ipynb runs from its first cell to its last."""

import json
import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).parent.parent / "docs" / "quickstart.ipynb"


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            code = "".join(cell["source"])
            exec(compile(code, f"quickstart.ipynb, cell {number}", "exec"), names)
    verdicts = {answer.question: answer.verdict for answer in names["answers"]}
    assert verdicts["riding horses on the beach"] == "likely"
    assert verdicts["a giraffe"] == "nothing matches"
    assert (tmp_path / "sheet.png").exists()
    assert names["history"].epoch == [0]
    assert (tmp_path / "birds.keras").exists()
    assert "a giraffe: nothing matches" in capsys.readouterr().out


def test_it_is_kept_without_outputs():
    # What a run printed would differ from machine to machine, and drift from the code.
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
