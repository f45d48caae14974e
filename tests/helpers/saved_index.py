"""Changes to the manifest of a saved index, which then says them."""

import json

from zoo.files.written import read_sealed, sealed


def rewritten(folder, **changes):
    """Changes the manifest, and its checksum."""
    path = folder / "index.json"
    path.write_text(json.dumps(sealed({**read_sealed(path), **changes})))
