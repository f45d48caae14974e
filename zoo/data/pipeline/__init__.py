"""What training draws: augmentation, batches and streams, each a function of (seed, step)."""
