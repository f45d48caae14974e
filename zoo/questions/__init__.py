"""Questions as people type them: their words, what they ask for, how common it is."""
