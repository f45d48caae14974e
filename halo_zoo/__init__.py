"""The console command `halo`: every command line of the zoo, also outside of a checkout.

    halo train pcme_cub --smoke     # python recipes/pcme_cub.py --smoke
    halo demo runs/pcme_cub         # python -m demo runs/pcme_cub

Recipes, export and demo import the zoo, never the reverse. A wheel has them in `zoo/applications`,
a checkout beside `zoo`; `halo` puts that folder on the module path of its own process.

This package is not in `zoo`, whose import takes seconds for Keras and TensorFlow: the help and the
lists need neither. Its own commands read their flags first too, so `zoo` is imported with
`HALO_LAZY=1` for them (see `zoo`).
"""

import ast
import difflib
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

TRAIN = "train"
_LAZY = ("halo_zoo.", "demo.", "export.")  # they import Keras themselves, after the flags


class Command(NamedTuple):
    """A subcommand.

    Attributes:
        arguments: what follows its name, for the help.
        summary: what it does, in one line.
        module: the module whose `main` it is; None for `train`, which has one for each recipe.
    """

    arguments: str
    summary: str
    module: str | None = None


COMMANDS = {
    TRAIN: Command("RECIPE [flags]", "train a model; without RECIPE: list the recipes"),
    "evaluate": Command(
        "EMBEDDINGS.npz | --model MODEL",
        "measure saved embeddings, or a model",
        "halo_zoo.evaluate",
    ),
    "confidence": Command(
        "probes RUN",
        "write the probes of a run or preset again",
        "halo_zoo.confidence",
    ),
    "report": Command("RUN", "write a report on a run", "halo_zoo.report"),
    "search": Command(
        "build | update | query | serve | …",
        "index, search and serve a collection",
        "halo_zoo.search",
    ),
    "export": Command("RUN OUT", "export a SavedModel or ONNX", "export.__main__"),
    "demo": Command("[RUN | INDEX]", "show a gallery in the browser", "demo.__main__"),
}


# The recipes of each paper, by how their names begin.
PAPERS = {
    "Your own data": ("own_",),
    "PCME (CVPR 2021)": ("pcme_",),
    "Gaussian VSE++ and VSRN (2022), and the points they stand on": ("gaussian_", "vse_", "vsrn_"),
    "DAA (NeurIPS 2022)": ("daa_",),
    "PCME++ (ICLR 2024)": ("pcmepp_",),
    "DivE (CVPR 2023), and PVSE": ("dive_", "pvse_"),
    "All systems on real birds, and variances over trained points": ("",),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs a subcommand and ends the process with its exit code, 2 for bad input.

    Args:
        argv: the arguments after `halo`, or None for those of the process.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    # TensorFlow logs as errors that it found no GPU; what fails raises an exception too.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        module, program, rest = _command(argv)
        if module is None:
            print(program)
            sys.exit(0)
        run = _runner(lazily=module.startswith(_LAZY))
    except (OSError, ValueError) as error:  # a backend that Keras cannot import is one too
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    run(_call, module, program, rest)


def applications_folder() -> Path:
    """The folder that holds `recipes/`, `export/` and `demo/`.

    Raises:
        ValueError: if there is none, where only `zoo` was copied.
    """
    home = Path(__file__).parent.parent
    for folder in (home / "zoo" / "applications", home):
        if (folder / "recipes").is_dir():
            return folder
    raise ValueError(f"{home}: expected recipes/ or zoo/applications/recipes/, found neither")


def recipes() -> dict[str, str]:
    """The recipes: `{name: first line of its docstring}`, sorted; nothing is imported for it."""
    found = {}
    for path in sorted((applications_folder() / "recipes").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), path)
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def _command(argv):
    """What to run, `(module, program, its arguments)`, or `(None, text to print, [])`."""
    if not argv or argv[0] in ("-h", "--help"):
        return None, _help(), []
    if argv[0] == "--version":
        import importlib.metadata  # here: a question needs none of its parsers

        return None, f"halo-zoo {importlib.metadata.version('halo-zoo')}", []
    name, *rest = argv
    if name not in COMMANDS:
        raise ValueError(_unknown("halo", "command", name, COMMANDS, "halo --help"))
    folder = applications_folder()
    if name != TRAIN:
        sys.path.insert(0, str(folder))
        return COMMANDS[name].module, f"halo {name}", rest
    known = recipes()
    if not rest or rest[0] in ("-h", "--help"):
        return None, _recipes_help(known), []
    recipe, *rest = rest
    if recipe not in known:
        raise ValueError(_unknown("halo train", "recipe", recipe, known, "halo train"))
    _check_data(rest)
    sys.path[:0] = [str(folder / "recipes"), str(folder)]  # recipes import their siblings
    return recipe, f"halo train {recipe}", rest


def _check_data(words):
    """Raises ValueError for a --data-dir that is not there, before a recipe imports Keras."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        flag, _, value = word.partition("=")
        value = value or following
        if flag == "--data-dir" and value != "none" and not Path(value).expanduser().exists():
            raise ValueError(f"--data-dir {value}: no such file or folder")


def _runner(lazily):
    """`zoo.cli.run`. The variable is for this import alone, not for processes that it starts."""
    if lazily:
        os.environ["HALO_LAZY"] = "1"
    try:
        return importlib.import_module("zoo.cli").run
    finally:
        if lazily:
            del os.environ["HALO_LAZY"]


def _call(module, program, argv):
    # Help and a run's config.json show the command as it was typed.
    sys.argv = [program, *argv]
    return importlib.import_module(module).main(argv)


def _unknown(before, kind, name, known, listing):
    path = Path(__file__).parent.parent / "zoo" / "former.tsv"  # `zoo.errors` would import Keras
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{before} {name}\t"):
            return line.replace("\t", ": ", 1)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"unknown {kind} {name!r}; the nearest is {close[0]!r} ({listing} lists all)"


def _help():
    rows = [(f"{name} {command.arguments}", command.summary) for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: halo COMMAND …\n",
            _columns(rows),
            "\nhalo COMMAND --help shows its flags, halo --version the version.",
        ]
    )


def _recipes_help(known):
    usage = "usage: halo train RECIPE [flags]; flags of a recipe: halo train RECIPE --help\n\n"
    width = max(map(len, known))
    parts, left = [], dict(known)
    for paper, beginnings in PAPERS.items():
        own = {
            name: left.pop(name) for name in known if name in left and name.startswith(beginnings)
        }
        parts.append(f"{paper}\n{_columns(own.items(), width)}")
    return usage + "\n\n".join(parts)


def _columns(rows: Iterable[tuple[str, str]], width: int = 0):
    rows = list(rows)
    width = width or max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:{width}}  {text}".rstrip() for name, text in rows)
