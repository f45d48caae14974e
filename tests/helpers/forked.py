"""Processes that begin where the imports of a recipe end: forks of one that has done no more.

A Python of its own takes seconds to import TensorFlow, and a test of what a process leaves behind
when it is killed, or fails, does not ask how it came to its modules. The forked one has computed
nothing, so that it has no thread and no graph, and no setting of pytest's process.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import types
from pathlib import Path

# `import zoo` alone imports neither Keras nor TensorFlow: its rooms do, when they are touched.
PRELOADED = ("zoo.models", "zoo.training", "zoo.plots", "halo_search.index", "matplotlib.pyplot")


def start(program, *arguments, env=None):
    """Starts a program; it prints to the files `out` and `err` of the process that is returned.

    Args:
        program: the path of a script, or source code.
        *arguments: of its command line.
        env: its environment; pytest's by default.

    Returns:
        A `multiprocessing.Process`, whose exit code is −9 if it was killed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    printed = tempfile.NamedTemporaryFile("w+"), tempfile.NamedTemporaryFile("w+")  # noqa: SIM115
    names = [file.name for file in printed]
    as_here = dict(env or os.environ), os.getcwd(), list(sys.path)
    process = context.Process(
        target=_run, args=(program, list(map(str, arguments)), *as_here, *names)
    )
    process.start()
    process.out, process.err = printed
    return process


def run(program, *arguments, env=None, timeout=300):
    """Runs a program to its end and returns what `subprocess.run` does."""
    process = start(program, *arguments, env=env)
    return finish(process, timeout)


def finish(process, timeout=300):
    """Waits for the end of a process that was started."""
    process.join(timeout)
    if process.is_alive():
        process.kill()
        process.join()
        raise subprocess.TimeoutExpired(process.name, timeout, stderr=process.err.read())
    with process.out as out, process.err as err:
        return subprocess.CompletedProcess([], process.exitcode, out.read(), err.read())


def _run(program, arguments, env, folder, path, *printed):
    for number, name in enumerate(printed, start=1):
        descriptor = os.open(name, os.O_WRONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.path[:] = path
    if isinstance(program, Path):
        sys.argv[:] = [str(program), *arguments]
        runpy.run_path(str(program), run_name="__main__")
    else:
        sys.argv[:] = ["-c", *arguments]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(main))
