"""Pictures without TensorFlow: files to pixels, and pixels to what an encoder is shown."""
