"""Pictures as TensorFlow reads, resizes and augments them."""
