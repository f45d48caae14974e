"""What pages tell to install and to run, and a process without what that does not bring."""

import importlib.metadata
import re
import shlex
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from processes import python

ROOT = Path(__file__).parents[2]
SETTING = re.compile(r'^([A-Z]\w+)="(.*)"$', re.M)  # a variable of the shell


def blocks(page, language):
    """The blocks of code of a Markdown file in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)


def with_variables(command, page):
    """A command of a page as the shell reads it; a name that the page does not set is an error."""
    values = dict(SETTING.findall(page))
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], command)


def install_line():
    """README's first `pip install …`, that of its code block, without its comment, as words."""
    lines = "\n".join(blocks(ROOT / "README.md", "bash")).splitlines()
    line = next(line for line in lines if line.startswith("pip "))
    return shlex.split(line, comments=True)


def absent(extras):
    """The top-level modules of this environment that a line with some extras does not bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted, seen = [(one, "") for one in project["dependencies"]], set()
    todo = list(extras)
    while todo:
        for one in project["optional-dependencies"][todo.pop()]:
            found = Requirement(one)
            if found.name == project["name"]:
                todo += found.extras
            else:
                wanted.append((one, ""))
    while wanted:
        text, extra = wanted.pop()
        one = Requirement(text)
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        for extra in ("", *one.extras):
            key = canonicalize_name(one.name), extra
            if key not in seen:
                seen.add(key)
                wanted += [(more, extra) for more in importlib.metadata.requires(one.name) or ()]
    brought = {name for name, _ in seen} | {canonicalize_name(project["name"])}
    return {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not brought & {canonicalize_name(owner) for owner in owners}
    }


_LACKING = """
import sys
from importlib.machinery import PathFinder

class Lacking:
    "Finds what is installed, but for some modules."
    absent = frozenset({absent!r})

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.absent:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Lacking
"""


def run_without(modules, code, cwd, variables):
    """The process of a Python program for which some modules are not installed."""
    program = _LACKING.format(absent=sorted(modules)) + code
    return python("-c", program, cwd=cwd, env=variables)
