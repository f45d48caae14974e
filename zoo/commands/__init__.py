"""Commands of `halo` that measure models: evaluate, confidence, report."""
