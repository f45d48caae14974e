"""The plan of the house: which room may import which. Imports go up this list, never down."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Each line may import itself and the lines above it.
ORDER = (
    ("errors", "embeddings"),
    ("files", "cli"),
    ("similarities",),
    ("layers",),
    ("losses",),
    ("encoders",),
    ("models",),
    ("metrics",),
    ("data",),
    ("checkpoints",),
    ("confidence",),
    ("collection",),
    ("search",),
    ("evaluation",),
    ("training",),
    ("retriever",),
    ("plots",),
)
# The rooms of `zoo/data`, likewise; the last is the hall, which knows all of them.
DATA = (("text",), ("records",), ("pipeline",), ("loaders",), ("toy",), ("datasets",))
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
ENTRIES = {"__init__"}  # what gathers the rooms for the user
APPLICATIONS = ("halo_search.cli.main", "recipes", "export", "demo", "benchmarks", "tools", "tests")


def imports(path):
    """`(line, dotted name)` of everything that a file imports, inside of functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


MODULES = sorted((ROOT / "zoo").rglob("*.py"))


def room_of(path):
    """The room of a file."""
    parts = path.relative_to(ROOT / "zoo").with_suffix("").parts
    return parts[0]


def test_every_room_is_in_the_plan():
    rooms = {room_of(path) for path in MODULES} - ENTRIES
    assert rooms <= set(LEVEL), rooms - set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    room = room_of(path)
    for line, name in imports(path):
        top, *rest = name.split(".")
        assert top not in APPLICATIONS, f"{path}:{line}: the library imports {name}"
        # `import zoo` climbs: the hall's names come from every room.
        assert name != "zoo" or room in ENTRIES, f"{path}:{line}: import the room, not zoo"
        if top == "zoo" and room not in ENTRIES and rest:
            assert LEVEL.get(rest[0], len(ORDER)) <= LEVEL[room], f"{path}:{line}: {name}"


def test_imports_go_one_way_in_data():
    level = {room: level for level, rooms in enumerate(DATA) for room in rooms}
    folder = ROOT / "zoo" / "data"
    seen = set()
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        if room in ENTRIES:
            continue
        seen.add(room)
        for line, name in imports(path):
            if name.startswith("zoo.data."):
                below = name.split(".")[2]
                assert level.get(below, len(DATA)) <= level[room], f"{path}:{line}: {name}"
    assert seen == set(level)
