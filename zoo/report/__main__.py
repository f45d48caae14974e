"""`python -m zoo.report`: the name of `halo report` in version 0.1."""

from zoo.cli import renamed

if __name__ == "__main__":
    renamed("zoo.report", "report")
