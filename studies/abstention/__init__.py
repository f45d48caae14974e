"""A benchmark of abstention: who knows when an answer is wrong, and when there is none."""
