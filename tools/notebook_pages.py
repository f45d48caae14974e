"""MkDocs' hook: a notebook among the tutorials is a page, its cells as they stand."""

import json
from pathlib import Path

from mkdocs.structure.files import File

FOLDER = "tutorials"


def on_files(files, config):
    """Adds a page for each notebook of the folder; the notebook itself stays beside it."""
    for path in sorted((Path(config["docs_dir"]) / FOLDER).glob("*.ipynb")):
        name = f"{FOLDER}/{path.stem}.md"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        files.append(File.generated(config, name, content=page(cells, path.name)))
    return files


def page(cells, name):
    """The Markdown of a notebook's cells; its own address stands below the title."""
    title, *rest = (_block(cell) for cell in cells)
    heading, _, text = title.partition("\n")
    note = f"*A notebook: [{name}]({name}).*"
    return "\n\n".join([heading, note, text.strip(), *rest]) + "\n"


def _block(cell):
    text = "".join(cell["source"]).strip()
    return f"```python\n{text}\n```" if cell["cell_type"] == "code" else text
