"""A gRPC client of a served model.

    python -m export.grpc_client localhost:8500 --images a.jpg b.jpg --captions "a red bird"

With both it prints the similarities, with one of them the uncertainties. Needs
tensorflow-serving-api, and neither Keras nor the zoo.
"""

import argparse
import sys
from pathlib import Path

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

MODEL = "halo"
_LARGEST_MESSAGE = 256 << 20  # gRPC's own limit, 4 MiB, is a handful of photos


class Client:
    """Requests to one server.

    Args:
        address: `"host:port"`.
        model: name of the model on the server.
        version: the version to ask for, or None for the server's choice.
        timeout: seconds after which a request fails.

    Every method returns a dict of NumPy arrays, see `export.signatures.Signatures`, and raises
    `grpc.RpcError`; with the code `INVALID_ARGUMENT`, `details()` says what is wrong with the
    request.
    """

    def __init__(self, address, model=MODEL, version=None, timeout=30.0):
        size = ("grpc.max_send_message_length", "grpc.max_receive_message_length")
        self._channel = grpc.insecure_channel(
            address, options=[(option, _LARGEST_MESSAGE) for option in size]
        )
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._model, self._version, self._timeout = model, version, timeout

    def encode_images(self, images):
        """Embeddings of the bytes of pictures, a list."""
        return self.predict("encode_images", {"images": images})

    def encode_captions(self, captions):
        """Embeddings of strings, a list."""
        return self.predict("encode_captions", {"captions": captions})

    def match(self, images, captions):
        """`similarity` `(N, M)` of bytes and strings."""
        # A server that merges requests does so for the full set of outputs only, and this matrix
        # must not be merged. `pairs`, a scalar, makes it fail where that would not hold.
        outputs = ["similarity", "pairs"]
        return self.predict("match", {"images": images, "captions": captions}, outputs)

    def predict(self, signature, inputs, outputs=()):
        """Calls any signature with `{argument: values}`; `outputs` leaves out the others."""
        request = predict_pb2.PredictRequest(output_filter=outputs)
        request.model_spec.name = self._model
        request.model_spec.signature_name = signature
        if self._version is not None:
            request.model_spec.version.value = self._version
        for name, values in inputs.items():
            # A list of texts or bytes; stored vectors are numbers, of their own kind.
            texts = name in ("images", "captions") and not hasattr(values, "dtype")
            dtype = tf.string if texts else None
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values, dtype))
        response = self._stub.Predict(request, timeout=self._timeout)
        return {name: tf.make_ndarray(value) for name, value in response.outputs.items()}

    def close(self):
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("address", help="host:port of the server's gRPC")
    parser.add_argument("--images", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--captions", nargs="*", default=[], metavar="TEXT")
    parser.add_argument("--model", default=MODEL)
    options = parser.parse_args(argv)
    if not options.images and not options.captions:
        parser.error("give --images, --captions or both")
    try:
        images = [path.read_bytes() for path in options.images]
        with Client(options.address, options.model) as client:
            if images and options.captions:
                similarity = client.match(images, options.captions)["similarity"]
                for path, row in zip(options.images, similarity, strict=True):
                    print(path, *(f"{value:.4f}" for value in row), sep="\t")
                return 0
            names = options.images or options.captions
            found = client.encode_images(images) if images else client.encode_captions(names)
        values = found.get("uncertainty")
        for row, name in enumerate(names):
            print(name, "no uncertainty" if values is None else f"{values[row]:.4f}", sep="\t")
    except grpc.RpcError as error:
        print(f"error: {error.code().name}: {error.details()}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
