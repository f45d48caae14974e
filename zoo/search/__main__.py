"""`python -m zoo.search`: the name of `halo search` in version 0.1."""

import halo_zoo

if __name__ == "__main__":
    halo_zoo.module_main("search", "search")
