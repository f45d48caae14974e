"""Every block of commands on every page is read by their parsers; Python runs elsewhere."""

import argparse
import csv
import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

import halo_search.cli.main
from documented_install import with_variables
from tools import paper_settings
from zoo import cli
from zoo.models.run_folder import RunFolder

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.S | re.M)
INLINE = re.compile(r"`((?:python|halo) [^`]+)`")
COMMANDS = ("", "bash")  # languages of blocks
SIGNATURES = ("encode_images", "encode_captions", "index_images", "index_captions")

# Blocks that no test runs, by page and the words that they begin with, and why.
EXCEPTIONS = {
    ("docs/howto/cluster.md", "from halo_search.collection.cluster"): "test_cluster.py has it",
    ("docs/howto/cluster.md", "import halo_search\nfrom pyspark"): "Spark is not installed here",
    ("docs/howto/large.md", 'index = LanceIndex.build("s3:'): "test_lance_s3.py has it",
    ("docs/start/first_hour.md", "python recipes/softplus.py"): "tests/test_first_hour.py runs it",
    ("docs/howto/large.md", "from halo_search.index.lance"): "tests/index/test_lance.py has it",
    ("docs/reproduce.md", 'CUB="--data-dir'): "variables, with which its commands are read",
    ("docs/vectors.md", "model, _, preprocess = open_clip"): "open_clip and PyTorch are not ours",
}
# Programs of others, whose flags are not looked at, and why they are on a page.
OF_OTHERS = {
    "ray": "starts the nodes of a cluster",
    "cd": "the shell",
    "docker": "TensorFlow Serving's image",
    "git": "fetches the checkout",
}


class Block(NamedTuple):
    """A fenced block: its page, the line that it begins on, its language, its text."""

    page: str
    line: int
    language: str
    text: str


class Parsed(Exception):  # noqa: N818
    """A command line was read, and nothing else was done."""


def blocks():
    for path in PAGES:
        text = path.read_text()
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield Block(path.relative_to(ROOT).as_posix(), line, found[2].strip(), found[3])


def why_not(block):
    """The reason of the exception, or None."""
    for (page, start), reason in EXCEPTIONS.items():
        if block.page == page and block.text.startswith(start):
            return reason
    return None


BLOCKS = list(blocks())
OF_COMMANDS = [b for b in BLOCKS if b.language in COMMANDS and not why_not(b)]


def commands(text):
    """The command lines of a block: comments left out, continued lines joined, `&&` divided."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in line.split(" && "):
            words = shlex.split(part, comments=True)
            if words:
                yield words


@pytest.fixture
def only_read(monkeypatch, tmp_path):
    """Command lines end once their parser has read all flags; two folders are runs."""
    for run in ("photos", "gru"):
        RunFolder.open(tmp_path / "runs" / run, {})
    for data in ("photos", "flickr8k", "runs/toy_photos"):  # `halo train` looks whether it exists
        (tmp_path / data).mkdir()
    monkeypatch.chdir(tmp_path)
    parse_args, parse = argparse.ArgumentParser.parse_args, cli.parse

    def read(parser, args=None, namespace=None):
        raise Parsed(parse_args(parser, args, namespace))

    def read_settings(settings_class, argv=None, description=None):
        raise Parsed(parse(settings_class, argv, description))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", read)
    monkeypatch.setattr(cli, "parse", read_settings)
    monkeypatch.setattr(sys, "path", list(sys.path))  # `halo` changes both
    monkeypatch.setattr(sys, "argv", ["halo"])


def check(words):
    """Fails unless a command line is one of the zoo's, or of `OF_OTHERS`."""
    program, *rest = words
    if program in OF_OTHERS:
        return
    assert program in CHECKS, f"no program of the zoo: {program}"
    CHECKS[program](rest)


def check_main(module, argv):
    main = importlib.import_module(module).main
    if not inspect.signature(main).parameters:
        assert not argv, f"{module} takes no flags"
        return
    with pytest.raises(Parsed) as read:
        main(argv)
    if module.startswith("benchmarks"):  # names are looked at after the flags
        assert set(read.value.args[0].names) <= set(importlib.import_module(module).modules())


def check_python(argv):
    if argv == ["client.py"]:  # which `halo export --format` writes; tests/export run it
        return
    if argv[0] == "-c":
        compile(argv[1], "-c", "exec")
    elif argv[:2] == ["-m", "pytest"]:
        assert all((ROOT / word).exists() for word in argv if word.startswith("tests/"))
    elif argv[0] == "-m" and argv[1].partition(".")[0] in sys.stdlib_module_names:
        assert importlib.util.find_spec(argv[1])
    elif argv[0] == "-m":
        name = argv[1]
        is_package = (ROOT / name.replace(".", "/")).is_dir()
        check_main(f"{name}.__main__" if is_package else name, argv[2:])
    else:
        path = ROOT / argv[0]
        assert path.parent == ROOT / "recipes", path
        assert path.exists(), path
        check_main(path.stem, argv[1:])


def check_halo(argv):
    with pytest.raises((Parsed, SystemExit)) as ended:
        halo_search.cli.main.main(argv)
    assert ended.type is Parsed or ended.value.code == 0


def check_make(argv):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(argv) <= set(targets)


def check_pip(argv):
    assert argv[0] == "install"
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.M)
    for what in argv[1:]:
        own = re.fullmatch(r"\.(?:\[([\w,]+)\])?", what)
        if own:
            assert set(own[1].split(",")) <= set(extras)
        else:
            Requirement(what)


def check_export(argv):
    name, value = argv[0].split("=", 1)
    known = (DOCS / "reference" / "cli.md").read_text()
    assert f"| `{name}` |" in known
    if name == "TF_CONFIG":
        assert set(json.loads(value)) == {"cluster", "task"}


def check_rest_client(argv):
    assert os.access(ROOT / "export" / "rest_client.sh", os.X_OK)
    assert argv[0].startswith("http")
    assert argv[1] in (*SIGNATURES, "images", "captions")
    assert len(argv) > 2


def check_curl(argv):
    request = json.loads(argv[argv.index("-d") + 1])
    if any(word.endswith("/ask") for word in argv):  # of `halo search serve`
        assert {"question", "questions", "image"} & set(request)
        return
    assert request["signature_name"] in SIGNATURES
    assert set(request) == {"signature_name", "inputs"}


CHECKS = {
    "python": check_python,
    "halo": check_halo,
    "make": check_make,
    "pip": check_pip,
    "export": check_export,
    "export/rest_client.sh": check_rest_client,
    "curl": check_curl,
}


@pytest.mark.parametrize("block", OF_COMMANDS, ids=lambda block: f"{block.page}:{block.line}")
def test_a_block_of_commands_is_read_by_their_parsers(block, only_read):
    found = list(commands(block.text))
    assert found
    for words in found:
        check(words)


def test_commands_within_a_line_are_read_too(only_read):
    """Those with flags or a recipe; a name alone, or a shape with `[` or `…`, is no command."""
    for path in PAGES:
        page = path.read_text()
        for command in INLINE.findall(" ".join(FENCE.sub("", page).split())):
            is_shape = re.search(r"…|\[|RECIPE", command)
            if not is_shape and (" --" in command or " recipes/" in command):
                check(shlex.split(with_variables(command, page)))


def test_what_make_does_is_read_too(only_read):
    """Its main job: each command by its own parser."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    values = dict(re.findall(r"^(\w+) [:?]= (.*)$", text, re.M))
    main, _, drawing = text.partition("\nall: ")[2].partition("\nsetup: ")[0].partition("\n\n")
    found = re.findall(r"^\t\$\(BIN\)/((?:python|halo) .+)$", f"{main}\n{drawing}", re.M)
    assert len(found) == 4
    for line in found:
        line = re.sub(r"\$\((\w+)\)", lambda name: values[name[1]], line)
        check(shlex.split(line))


SETTINGS = (DOCS / "models" / "settings.md").read_text()


@pytest.mark.parametrize(
    ("title", "recipe", "variants"),
    re.findall(r"^\| ([^|]+) \| `[^|]+` \| `(\w+)\.py`([^|]*)\|", SETTINGS, re.M),
)
def test_what_the_page_of_settings_offers_is_read_too(title, recipe, variants, only_read):
    own, *flags = paper_settings.SYSTEMS[title].split()
    assert own == recipe
    for more in ["", *re.findall(r"`(--[^`]+)`", variants)]:
        check(["python", f"recipes/{recipe}.py", *flags, *more.split()])


def test_no_block_is_left_out():
    """Python runs (tests/test_site.py), commands are read (above), the rest is what is printed."""
    for block in BLOCKS:
        where = f"{block.page}:{block.line}"
        is_python = block.language.partition(" ")[0] == "python"
        if is_python or block in OF_COMMANDS or why_not(block):
            continue
        assert block.language in ("text", "json", "csv"), f"{where}: a block of what?"
        if block.language == "json":
            for line in block.text.splitlines():
                json.loads(line)
        elif block.language == "csv":
            assert len({len(row) for row in csv.reader(block.text.splitlines())}) == 1, where
        else:
            first = block.text.split()[0]
            assert first not in (*CHECKS, "import", "from"), f"{where}: this is code"


def test_every_exception_is_needed():
    for page, start in EXCEPTIONS:
        assert any(b.page == page and b.text.startswith(start) for b in BLOCKS), (page, start)
