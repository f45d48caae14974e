"""The command lines: flags and help, which need no TensorFlow. What they do is in their rooms."""
