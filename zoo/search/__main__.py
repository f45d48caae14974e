"""`python -m zoo.search`, which is `halo search`: its commands are of `zoo.retriever`."""

import importlib

from zoo.cli import run

# By its name: what asks an index is above the index.
main = importlib.import_module("zoo.retriever.__main__").main

if __name__ == "__main__":
    run(main)
