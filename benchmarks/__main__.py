"""`python -m benchmarks [NAME …] [--out DIR]`: lists and runs the benchmarks of this folder.

A benchmark is a module here with a `main()` that returns a `benchmarks.report.Report` or a list of
them. Without names all of them run, one after the other.
"""

import argparse
import importlib
import os
import pkgutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

from rich.console import Console

import benchmarks
from benchmarks import report

HELPERS = {"__main__", "broadcasts", "report", "timing"}


def modules():
    """Names of the benchmarks, without importing them."""
    return sorted(
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in HELPERS
    )


def main(arguments=None):
    available = modules()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(available))
    parser.add_argument("--out", metavar="DIR", help="also write NAME.json there")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150)
    if options.list:
        console.print("\n".join(available))
        return 0
    unknown = sorted(set(options.names) - set(available))
    if unknown:
        parser.error(f"NAME must be one of {', '.join(available)}; received {', '.join(unknown)}")
    console.print(report.hardware_line(), style="bold", markup=False)
    for name in options.names or available:
        module = importlib.import_module(f"benchmarks.{name}")
        if not hasattr(module, "main"):
            continue
        result = module.main()
        reports = result if isinstance(result, list) else [result]
        for row in reports:
            row.print(console)
        if options.out:
            console.print(f"wrote {report.save(reports, name, options.out)}", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
