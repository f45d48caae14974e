"""`python -m halo_search`, as `halo`."""

from halo_search.cli.main import main

if __name__ == "__main__":
    main()
