"""`python -m zoo.metrics`: the name of `halo evaluate` in version 0.1."""

import halo_zoo

if __name__ == "__main__":
    halo_zoo.module_main("metrics", "evaluate")
