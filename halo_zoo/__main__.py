"""`python -m halo_zoo`, as `halo`."""

from halo_zoo import main

if __name__ == "__main__":
    main()
