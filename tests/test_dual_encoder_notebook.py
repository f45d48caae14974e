"""docs/tutorials/dual_encoder.ipynb runs from its first cell to its last, on a toy, in seconds."""

import json
import pathlib

from tools.notebook_pages import page

NOTEBOOK = pathlib.Path(__file__).parent.parent / "docs" / "tutorials" / "dual_encoder.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def test_its_page_is_the_notebook():
    text = page(CELLS, NOTEBOOK.name)
    assert text.startswith("# A dual encoder in plain Keras 3\n\n*A notebook: [dual_encoder.ipynb]")
    assert all(f"```python\n{code}\n```" in text for code in CODE)
    assert text.count("```") == 2 * len(CODE)
