"""The plan of the house: which room may import which. Imports go up the lists, never down.

`halo_search` answers questions without Keras; `zoo` has the models and imports `halo_search`. The
one way back is `halo_search.towers.keras_models`.
"""

import ast
import json
import os
import re
from pathlib import Path

import pytest

from processes import python

ROOT = Path(__file__).parent.parent
PACKAGES = ("halo_search", "zoo")
# Each line may import itself and the lines above it.
ORDER = {
    "halo_search": (
        ("errors",),
        ("files", "embeddings"),
        ("confidence", "photos"),
        ("presets",),
        ("index",),
        ("towers",),
        ("collection",),
        ("retriever",),
        ("server",),
        ("cli",),
    ),
    "zoo": (
        ("keras_import", "embeddings", "cli"),
        ("images",),
        ("similarities",),
        ("layers",),
        ("losses",),
        ("encoders",),
        ("models",),
        ("metrics",),
        ("data",),
        ("checkpoints",),
        ("presets",),
        ("evaluation",),
        ("training",),
        ("plots",),
        ("commands",),
        ("answering",),
    ),
}
# The rooms of `zoo/data`, in the same way; the last is the hall, which knows all of them.
DATA = (("text",), ("records",), ("pipeline",), ("loaders",), ("toy",), ("datasets",))
# What gathers rooms for the user: the packages themselves, `python -m halo_search`, and two modules
# that repeat names of `halo_search` under `zoo`.
ENTRIES = {
    "halo_search": {"__init__", "__main__"},
    "zoo": {"__init__", "search", "confidence"},
}
APPLICATIONS = ("recipes", "export", "demo", "benchmarks", "studies", "tools", "tests")
ABOVE = ("zoo", "keras", "tensorflow", "tensorflow_probability")  # of `halo_search`
DOOR = ("halo_search/towers/__init__.py", "keras_models", "zoo.answering")
# Imports inside of a function that go down the list, and why.
DOWN = {
    ("halo_search/index/scoring.py", "halo_search.towers.keras_models"): (
        "a similarity that only Keras computes is behind the door"
    ),
    ("zoo/models/dual_encoder.py", "zoo.presets.from_preset"): "KerasHub's name for it",
    ("zoo/models/dual_encoder.py", "zoo.presets.save_preset"): "KerasHub's name for it",
    ("zoo/models/tower.py", "zoo.presets.from_preset"): "a pickled tower opens its model by name",
}
FILES = {package: sorted((ROOT / package).rglob("*.py")) for package in PACKAGES}
MODULES = [path for package in PACKAGES for path in FILES[package]]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def imports(path):
    """`(line, dotted name, function)` of each import of a file; the function is the outermost that
    it stands in, or None."""

    def below(node, function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = function or node.name
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}", function
        for child in ast.iter_child_nodes(node):
            yield from below(child, function)

    return below(ast.parse(path.read_text(encoding="utf-8")), None)


def package_of(path):
    return path.relative_to(ROOT).parts[0]


def room_of(path):
    """The room of a file: the folder or module below its package."""
    return path.relative_to(ROOT / package_of(path)).with_suffix("").parts[0]


def levels(order):
    return {room: level for level, rooms in enumerate(order) for room in rooms}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_plan_has_every_room(package):
    rooms = {room_of(path) for path in FILES[package]} - ENTRIES[package]
    assert rooms == set(levels(ORDER[package]))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path):
    package, room = package_of(path), room_of(path)
    level, is_entry = levels(ORDER[package]), room in ENTRIES[package]
    for line, name, function in imports(path):
        top, *rest = name.split(".")
        where = f"{name_of(path)}:{line}: {name}"
        assert top not in APPLICATIONS, f"{where}: a package imports what is built on it"
        if top != package or is_entry:
            continue
        assert rest, f"{where}: import the room, not the package, which imports every room"
        if function is None or (name_of(path), name) not in DOWN:
            below = rest[0] if rest[0] in level else "__init__"
            assert level.get(below, len(level)) <= level[room], f"{where}: down the list"


def test_exceptions_are_needed():
    """Each import that goes down is still there, inside of a function."""
    for file, name in DOWN:
        assert any(
            imported == name and function for _, imported, function in imports(ROOT / file)
        ), (file, name)


def test_imports_go_one_way_in_data():
    level = levels(DATA)
    folder = ROOT / "zoo" / "data"
    seen = set()
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        seen.add(room)
        for line, name, _ in imports(path):
            if name.startswith("zoo.data."):
                below = name.split(".")[2]
                assert level.get(below, len(DATA)) <= level[room], f"{path}:{line}: {name}"
    assert seen == set(level)


def test_answers_never_import_models():
    """Nothing in `halo_search` imports `zoo`, Keras or TensorFlow, the one door aside."""
    above = [
        (name_of(path), function, name)
        for path in FILES["halo_search"]
        for _, name, function in imports(path)
        if name.partition(".")[0] in ABOVE
    ]
    assert above == [DOOR]


def test_answers_name_no_module_of_models_in_strings():
    """`import_module("zoo…")` would be a second door."""
    pattern = re.compile(
        rf"(?:import_module|__import__|require)\(\s*f?[\"'](?:{'|'.join(ABOVE)})\b"
    )
    found = [name_of(path) for path in FILES["halo_search"] if pattern.search(path.read_text())]
    assert not found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_import_depends_on_the_environment(path):
    """No condition on `os.environ` stands around an import."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            reads = re.search(r"\b(environ|getenv)\b", ast.unparse(node.test))
            decides_imports = re.search(r"\bimport\b|import_module|__import__", ast.unparse(node))
            assert not (reads and decides_imports), f"{name_of(path)}:{node.lineno}"


IMPORT = """
import json, sys
finders, started = list(sys.meta_path), []
PROCESSES = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.exec")
sys.addaudithook(lambda event, _: started.append(event) if event in PROCESSES else None)
import halo_search
print(json.dumps([finders == sys.meta_path, started, sorted(sys.modules)]))
"""


def test_an_import_changes_nothing_else():
    """`import halo_search` starts no process, leaves `sys.meta_path` as it was, and imports the
    same modules whatever is set."""
    variables = {
        name for path in MODULES for name in re.findall(r"\bHALO_[A-Z_]+\b", path.read_text())
    }
    bare = {name: value for name, value in os.environ.items() if name not in variables}
    results = [
        json.loads(python("-c", IMPORT, cwd=ROOT, env=environment).stdout)
        for environment in (bare, {**bare, **dict.fromkeys({*variables, "HALO_LAZY"}, "1")})
    ]
    (same_finders, started, modules), others = results
    assert same_finders
    assert started == []
    assert not [name for name in modules if name.partition(".")[0] in ABOVE]
    assert [same_finders, started, modules] == others


PHOTOS = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None  # an import of it is an ImportError
import halo_search
photos = halo_search.packaged_photos()[:24]
retriever = halo_search.Retriever.build("photos_pfe", photos)
questions = ["two people riding horses on the beach", "a penguin"]
answers = [answer.to_dict() for answer in retriever.ask(questions, k=3)]
retriever.save("index")
loaded = halo_search.Retriever.load("index")
again = [answer.to_dict() for answer in loaded.ask(questions, k=3)]
print(json.dumps([answers, again]))
"""


@pytest.mark.slow
def test_photos_are_asked_without_models(tmp_path):
    """Build, ask, save, load and ask again where `zoo`, Keras and TensorFlow cannot be imported."""
    variables = {"PYTHONPATH": str(ROOT)}
    done = python("-c", PHOTOS, json.dumps(ABOVE), cwd=tmp_path, **variables)
    answers, again = json.loads(done.stdout)
    assert answers == again
    horses, penguin = answers
    assert horses["verdict"] == "likely"
    assert horses["names"][0].endswith("000000007281.jpg")  # horses on a beach
    assert penguin["verdict"] == "nothing matches"
