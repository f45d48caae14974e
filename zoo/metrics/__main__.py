"""`python -m zoo.metrics`: the name of `halo evaluate` in version 0.1."""

from zoo.cli import renamed

if __name__ == "__main__":
    renamed("zoo.metrics", "evaluate")
