"""docs/tutorials/dual_encoder.ipynb runs from its first cell to its last, on a toy, in seconds."""

import json
import pathlib
import time

import numpy as np
import pytest

from tools.notebook_pages import page

NOTEBOOK = pathlib.Path(__file__).parent.parent / "docs" / "tutorials" / "dual_encoder.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


@pytest.mark.very_slow  # test_documentation.py runs the notebook of the zoo
def test_it_runs_on_a_toy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, start = {"__name__": "__main__"}, time.process_time()
    for number, code in enumerate(CODE):
        exec(compile(code, f"dual_encoder.ipynb, code {number}", "exec"), names)
    assert time.process_time() - start < 30
    losses = names["history"].history["loss"]
    assert losses[-1] < losses[0]
    # Of some 130 pictures, of which nobody has seen that pair of colours and shape.
    chance = 100 * 5 / len(names["test_names"])
    assert names["results"]["t2i_recall@5"] > 2 * chance
    best = (names["photo_vectors"] @ names["text_vectors"][0]).argmax()
    assert np.asarray(names["rows"])[0, 0] == best  # of the search that was saved and read again
    # Of some 130 captions of 66 pictures, calibrated on as many: either is off by .06.
    assert abs(names["probability"].mean() - names["right"].mean()) < 0.25
    assert "said 0." in capsys.readouterr().out


def test_its_page_is_the_notebook():
    text = page(CELLS, NOTEBOOK.name)
    assert text.startswith("# A dual encoder in plain Keras 3\n\n*A notebook: [dual_encoder.ipynb]")
    assert all(f"```python\n{code}\n```" in text for code in CODE)
    assert text.count("```") == 2 * len(CODE)
