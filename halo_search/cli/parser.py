"""Command lines: errors are one line on stderr with exit code 2, and help costs no import."""

import argparse
import atexit
import contextlib
import difflib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from halo_search.errors import InputError
from halo_search.files.folders import printable

_NEAR = 0.8  # of `difflib`, from which a flag is likely what was meant


def run(main: Callable[..., Any], *args: Any) -> NoReturn:
    """Calls a command line's `main` and ends the process with its exit code."""
    logging.getLogger("tensorflow").setLevel(
        logging.ERROR
    )  # users cannot act on retracing warnings
    try:
        code = main(*args)
        print(end="", flush=True)  # here, where a closed pipe is no error
    except InputError as error:
        code = _complain(str(error))
    except BrokenPipeError:  # `| head`: nobody reads further
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        code = _complain(f"{error.strerror or error}{where}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
        _end_at_exit(code)
    sys.exit(code if isinstance(code, int) else 0)


def _end_at_exit(code):
    """Lets the process end once its exit functions have run. Python would take its modules down
    then, and TensorFlow finish what it computes and compiles: 10 s on two busy cores, and more."""

    def end():
        atexit.unregister(end)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    atexit.register(end)


def program(command: str) -> str:
    """What the usage of a command line calls it: `"halo export"` where it runs as a subcommand of
    `halo` (`halo_search.cli.main`), else its own name, `"python -m export"`."""
    return sys.argv[0] if sys.argv[0].startswith("halo ") else command


def verbosity(shown: bool = True) -> int:
    """Keras' `verbose` for a progress bar: 2, one line at the end, where standard output is a file
    or a pipe, so that it holds no control characters."""
    if not shown:
        return 0
    can_draw_over = "ipykernel" in sys.modules or (sys.stdout and sys.stdout.isatty())
    return 1 if can_draw_over else 2


@contextlib.contextmanager
def naming(flag: str, value: Any) -> Iterator[None]:
    """Lets an `InputError` about the value of a flag name the flag."""
    try:
        yield
    except InputError as error:
        message = str(error)
        if value is not None and message.startswith(str(value)):
            raise InputError(f"{flag} {message}") from error
        if value is not None and repr(str(value)) in message:
            raise InputError(f"{flag}: {message}") from error
        raise


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on stderr, with exit code 2."""

    def __init__(self, *args, formatter_class=argparse.RawDescriptionHelpFormatter, **more):
        super().__init__(*args, formatter_class=formatter_class, **more)
        self.register("type", Path, path_of)  # what `type=Path` means

    def parse_known_args(self, args=None, namespace=None):
        words = sys.argv[1:] if args is None else list(args)
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break  # what follows is of others
            if word.startswith("--") and " " not in word and not self._knows(word):
                self.error(unknown_flag(word, list(self._option_string_actions)))
        return super().parse_known_args(words, namespace)

    def _knows(self, word):
        """Whether a word is a flag of this parser, or the beginning of one where that is
        allowed."""
        name = word.partition("=")[0]
        flags = self._option_string_actions
        return name in flags or (self.allow_abbrev and any(flag.startswith(name) for flag in flags))

    def error(self, message: str) -> NoReturn:
        # argparse prints the whole usage first, which buries the one line that matters.
        self.exit(_complain(f"{message} (--help lists the flags)"))


def path_of(text: str) -> Path:
    """A path as it was typed. `Path("")` is this folder, which nobody means by it."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected a path; received {text!r}")
    return Path(text)


def _complain(message):
    """Prints an error as one line, and returns its exit code."""
    message = " ".join(message.split())
    if not message.isprintable():  # of a stranger's file
        message = printable(message)
    print("error:", message, file=sys.stderr)
    return 2


def unknown_flag(argument, flags):
    """What to say of a flag that is none, with the one that was likely meant."""
    name = argument.partition("=")[0]
    longer = [flag for flag in flags if flag.startswith(name)]
    close = longer if len(longer) == 1 else difflib.get_close_matches(name, flags, 1, _NEAR)
    return f"unknown argument {name!r}" + (f", did you mean {close[0]}?" if close else "")
