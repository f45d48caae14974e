"""`python -m zoo.evaluation`: the name of `halo confidence` in version 0.1."""

from zoo.cli import renamed

if __name__ == "__main__":
    renamed("zoo.evaluation", "confidence")
