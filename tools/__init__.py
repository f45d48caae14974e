"""What maintainers make pages of `docs` with. Not part of the wheel."""
