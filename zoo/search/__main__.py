"""`python -m zoo.search`: the name of `halo search` in version 0.1."""

from zoo.cli import renamed

if __name__ == "__main__":
    renamed("zoo.search", "search")
