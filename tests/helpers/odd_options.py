"""Runs every option of every command with wrong values, each in a fork: a script for
`test_odd_options.py`.

The parent has imported the commands alone, so that an import of Keras, or of anything else that is
heavy, shows as processor time. Prints a JSON list of `[command, option, value, exit code, standard
error, seconds of processor time]`.
"""

import argparse
import json
import os
import resource
import sys
import tempfile

from demo import __main__ as demo
from export import __main__ as export
from halo_search.cli import confidence, evaluate, report, search
from halo_search.cli.parser import run

VALUES = ("", "-7", "nonsense", "1e99", "/nowhere/at all")
NOWHERE = "/nowhere/source"
COMMANDS = {
    "evaluate": (evaluate.main, evaluate._parser()),
    "confidence": (confidence.main, confidence._parser()),
    "report": (report.main, report._parser()),
    "export": (export.main, export._parser()),
    "search": (search.main, search.parser()),
    "demo": (demo.main, demo._parser()),
}


def cases():
    """Yields `(main, words before an option, option, whether it is a whole number)`."""
    for name, (main, parser) in COMMANDS.items():
        inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        parsers = inner[0].choices if inner else {None: parser}
        for command, own in parsers.items():
            words = [] if command is None else [command]
            places = [a for a in own._actions if not a.option_strings and a.nargs not in ("*", "?")]
            words += [NOWHERE for _ in places] or [NOWHERE] * (name == "demo")
            for action in own._actions:
                if not action.option_strings or action.nargs == 0 or action.dest == "help":
                    continue
                needed = [a for a in own._actions if a.required and a.option_strings]
                more = [w for a in needed if a is not action for w in (a.option_strings[0], "x")]
                yield main, name, [*words, *more], action


def outcome(main, words):
    """`(exit code, standard error, seconds of processor time)` of a command in a fork."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            try:
                run(main, words)
            except SystemExit as error:
                os._exit(error.code or 0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        _, status, used = os.wait4(child, 0)
        said.seek(0)
        seconds = used.ru_utime + used.ru_stime
        return os.waitstatus_to_exitcode(status), said.read().decode(), round(seconds, 2)


def main():
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
    found = []
    for command, name, words, action in cases():
        option = action.option_strings[-1]
        for value in VALUES:
            result = outcome(
                command, [*words, f"{option}={value}" if option[1] == "-" else f"{option}{value}"]
            )
            found.append([f"{name} {words[0] if words else ''}".strip(), option, value, *result])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
