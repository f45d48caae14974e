"""`python -m zoo.report`, which is `halo report`: its flags are in `zoo.commands`."""

import importlib

from zoo.cli import run

# By its name: the command lines are above the rooms.
main = importlib.import_module("zoo.commands.report").main

if __name__ == "__main__":
    run(main)
