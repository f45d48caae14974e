"""`python -m zoo.metrics`, which is `halo evaluate`: its flags are in `zoo.commands`."""

import importlib

from zoo.cli import run

# By its name: the command lines are above the rooms.
main = importlib.import_module("zoo.commands.evaluate").main

if __name__ == "__main__":
    run(main)
