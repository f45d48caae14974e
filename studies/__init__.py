"""Studies: what the library's promises are worth, measured on real data. Not in the wheel."""
