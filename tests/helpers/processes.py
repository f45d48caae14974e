"""Programs of Python in processes of their own, run to their end."""

import os
import subprocess
import sys


def python(*words, code=0, cwd=None, env=None, **variables):
    """The ended process of `python WORDS`, which fails with its errors if it ends otherwise.

    `env` takes the place of this process' variables; `variables` are added to either.
    """
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**(os.environ if env is None else env), **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr[-3000:]
    return done
