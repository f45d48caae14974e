"""What the flags of an export may say, without TensorFlow."""

MAX_PIXELS = 50_000_000  # a decoded picture of 150 MB; cameras of today stay below
STORAGE = ("float32", "bfloat16", "float16", "dynamic_range")
SAVED_MODEL, ONNX = "tf_saved_model", "onnx"
FORMATS = (SAVED_MODEL, ONNX)
