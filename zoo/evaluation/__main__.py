"""`python -m zoo.evaluation`: the name of `halo confidence` in version 0.1."""

import halo_zoo

if __name__ == "__main__":
    halo_zoo.module_main("evaluation", "confidence")
