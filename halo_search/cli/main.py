"""The console command `halo`: every command line, also outside of a checkout.

    halo search build photos index --model photos_pfe
    halo train pcme_cub --smoke     # python recipes/pcme_cub.py --smoke
    halo demo runs/pcme_cub         # python -m demo runs/pcme_cub

A wheel has recipes, export and demo in `halo_search/applications`, a checkout beside the packages;
`halo` puts that folder on the module path of its own process. Commands that need Keras import it
after their flags have been read; the help of recipes is text that `tools.recipe_help` wrote.
"""

import ast
import difflib
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from halo_search.cli import recipe_flags
from halo_search.cli.parser import run

TRAIN = "train"


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
        "halo_search.cli.evaluate",
    ),
    "confidence": Command(
        "probes RUN",
        "write the probes of a run or preset again",
        "halo_search.cli.confidence",
    ),
    "report": Command("RUN", "write a report on a run", "halo_search.cli.report"),
    "search": Command(
        "build | update | query | serve | …",
        "index, search and serve a collection",
        "halo_search.cli.search",
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
    try:
        module, program, rest = _command(argv)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    if module is None:
        print(program)
        sys.exit(0)
    run(_call, module, program, rest)


def applications_folder() -> Path:
    """The folder that holds `recipes/`, `export/` and `demo/`.

    Raises:
        ValueError: if there is none, where only `halo_search` was copied.
    """
    package = Path(__file__).parent.parent
    for folder in (package / "applications", package.parent):
        if (folder / "recipes").is_dir():
            return folder
    raise ValueError(f"{package}: expected applications/recipes/ or ../recipes/, found neither")


def recipes() -> dict[str, str]:
    """The recipes: `{name: first line of its docstring}`, sorted; nothing is imported for it."""
    summaries = {}
    for path in sorted((applications_folder() / "recipes").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), path)
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            summaries[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return summaries


def _command(argv):
    """What to run, `(module, program, its arguments)`, or `(None, text to print, [])`."""
    if not argv or argv[0] in ("-h", "--help"):
        return None, _help(), []
    if argv[0] == "--version":
        import importlib.metadata  # here: a question needs none of its parsers

        return None, f"halo-zoo {importlib.metadata.version('halo-zoo')}", []
    name, *rest = argv
    if name not in COMMANDS:
        raise ValueError(_unknown("command", name, COMMANDS, "halo --help"))
    folder = applications_folder()
    if name != TRAIN:
        sys.path.insert(0, str(folder))
        return COMMANDS[name].module, f"halo {name}", rest
    known = recipes()
    if not rest or rest[0] in ("-h", "--help"):
        return None, _recipes_help(known), []
    recipe, *rest = rest
    if recipe not in known:
        raise ValueError(_unknown("recipe", recipe, known, "halo train"))
    if {"-h", "--help"} & set(rest):
        return None, (folder / "recipes" / "help" / f"{recipe}.txt").read_text("utf-8").rstrip(), []
    _check_data(rest)
    recipe_flags.check(folder / "recipes" / "help" / f"{recipe}.json", rest)
    sys.path[:0] = [str(folder / "recipes"), str(folder)]  # recipes import their siblings
    return recipe, f"halo train {recipe}", rest


def _check_data(words):
    """Checks `--data-dir` among a recipe's words, before the recipe imports Keras."""
    from halo_search.cli.checks import check_data_dir  # here: `halo --help` needs no Pillow

    for word, following in zip(words, [*words[1:], ""], strict=False):
        flag, _, value = word.partition("=")
        value = value or following
        if flag == "--data-dir" and value != "none":
            check_data_dir(value)


def _call(module, program, argv):
    """Imports the module of a command and runs its `main`."""
    # Help and a run's config.json show the command as it was typed.
    sys.argv = [program, *argv]
    return importlib.import_module(module).main(argv)


def _unknown(kind, name, known, listing):
    """What to say of a name that is none, with the nearest one."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"unknown {kind} {name!r}; the nearest is {close[0]!r} ({listing} lists all)"


def _help():
    """The commands, a line each."""
    rows = [(f"{name} {command.arguments}", command.summary) for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: halo COMMAND …\n",
            _columns(rows),
            "\nhalo COMMAND --help shows its flags, halo --version the version.",
        ]
    )


def _recipes_help(known):
    """The recipes by paper, a line each."""
    usage = "usage: halo train RECIPE [flags]; flags of a recipe: halo train RECIPE --help\n\n"
    width = max(map(len, known))
    parts, rest = [], dict(known)
    for paper, beginnings in PAPERS.items():
        of_paper = {
            name: rest.pop(name) for name in known if name in rest and name.startswith(beginnings)
        }
        parts.append(f"{paper}\n{_columns(of_paper.items(), width)}")
    return usage + "\n\n".join(parts)


def _columns(rows: Iterable[tuple[str, str]], width: int = 0):
    """Rows of a name and a text, aligned."""
    rows = list(rows)
    width = width or max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:{width}}  {text}".rstrip() for name, text in rows)
