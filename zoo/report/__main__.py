"""`python -m zoo.report`: the name of `halo report` in version 0.1."""

import halo_zoo

if __name__ == "__main__":
    halo_zoo.module_main("report", "report")
