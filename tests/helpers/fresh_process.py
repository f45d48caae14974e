"""Runs exports in a process that can import neither `zoo`, `export`, nor Keras.

Started by `test_every_builder.py`: `fresh_process.py MANIFEST`, which holds, for every export, the
folder, the modules to import for it and the file of requests and expected outputs. Prints, as
JSON, `{export: {signature/output: largest difference}}`.
"""

import json
import sys

for name in ("zoo", "export", "keras", "tf_keras", "keras_hub"):
    sys.modules[name] = None  # importing it raises ImportError

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from relative import difference  # noqa: E402


def main(manifest):
    differences = {}
    for name, entry in json.loads(manifest).items():
        for module in entry["loads_with"]:
            __import__(module)
        if entry["loads_with"] == ["tensorflow"] and "tensorflow_text" in sys.modules:
            raise RuntimeError(f"{name} has to load before tensorflow_text is imported")
        model = tf.saved_model.load(entry["folder"])
        with np.load(entry["requests"], allow_pickle=True) as arrays:
            requests = dict(arrays)
        differences[name] = run(model, requests)
    print(json.dumps(differences))


def run(model, requests):
    differences = {}
    for signature, function in model.signatures.items():
        arguments = {
            argument: tf.constant(requests[argument].tolist(), spec.dtype)
            if spec.dtype == tf.string
            else tf.constant(requests[argument])
            for argument, spec in function.structured_input_signature[1].items()
        }
        for output, value in function(**arguments).items():
            expected = requests.get(f"{signature}/{output}")
            if expected is None:
                differences[f"{signature}/{output}"] = None
                continue
            if value.shape != expected.shape:
                raise RuntimeError(f"{signature}/{output}: {value.shape} for {expected.shape}")
            differences[f"{signature}/{output}"] = difference(value.numpy(), expected)
    return differences


if __name__ == "__main__":
    main(sys.argv[1])
