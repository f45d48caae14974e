"""`python -m zoo.evaluation`, which is `halo confidence`: its flags are in `zoo.commands`."""

import importlib

from zoo.cli import run

# By its name: the command lines are above the rooms.
main = importlib.import_module("zoo.commands.confidence").main

if __name__ == "__main__":
    run(main)
