"""A stand-in for TensorFlow Serving: it answers gRPC and REST requests from a SavedModel.

    python -m tools.stand_in served            # gRPC on port 8500, REST on 8501

It is for trying the clients where the real server cannot run, and listens on this machine alone.
It knows no versions but the newest, no batching and no warm-up; what it shares with the real one is
the wire format and the signatures. Needs tensorflow-serving-api, and neither Keras nor the zoo.
"""

import argparse
import base64
import contextlib
import http.server
import json
import re
import sys
import threading
from concurrent import futures
from pathlib import Path

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

_LARGEST_MESSAGE = 256 << 20


class SavedModelService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers from the SavedModel in a folder."""

    def __init__(self, folder):
        self.loaded = tf.saved_model.load(str(folder))  # must stay referenced
        self.signatures = self.loaded.signatures

    def run(self, name, inputs):
        """Arrays of a signature; inputs are cast to its dtypes, or refused."""
        function = self.signatures[name or "serving_default"]
        specs = function.structured_input_signature[1]
        if set(inputs) != set(specs):
            raise tf.errors.InvalidArgumentError(None, None, f"expected the inputs {sorted(specs)}")
        for key, spec in specs.items():
            if not spec.is_compatible_with(inputs[key]):
                message = f"`{key}` must be {spec}; received {inputs[key]}"
                raise tf.errors.InvalidArgumentError(None, None, message)
        return {key: value.numpy() for key, value in function(**inputs).items()}

    def Predict(self, request, context):  # noqa: N802 (gRPC's own name)
        inputs = {name: tf.constant(tf.make_ndarray(v)) for name, v in request.inputs.items()}
        try:
            outputs = self.run(request.model_spec.signature_name, inputs)
        except KeyError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no signature {error}")
        except tf.errors.OpError as error:
            # TensorFlow's codes are gRPC's.
            code = {status.value[0]: status for status in grpc.StatusCode}[error.error_code]
            context.abort(code, error.message)
        response = predict_pb2.PredictResponse()
        response.model_spec.CopyFrom(request.model_spec)
        for name in request.output_filter or outputs:
            response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
        return response


@contextlib.contextmanager
def grpc_server(service, port=0):
    """Yields the address of a server on a port of the loopback; 0 is a free one."""
    options = [(f"grpc.max_{way}_message_length", _LARGEST_MESSAGE) for way in ("send", "receive")]
    server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(service, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait(10)


@contextlib.contextmanager
def rest_server(service, port=0):
    """Yields the URL of a server that takes TensorFlow Serving's JSON; port 0 is a free one."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                if not re.fullmatch(r"/v1/models/\w+:predict", self.path):
                    raise ValueError(f"{self.path}: expected /v1/models/NAME:predict")
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                inputs = {name: _tensor(values) for name, values in request["inputs"].items()}
                outputs = service.run(request.get("signature_name"), inputs)
                answer = {"outputs": {name: value.tolist() for name, value in outputs.items()}}
                status = 200
            except tf.errors.OpError as error:
                answer, status = {"error": error.message}, 400
            except (KeyError, TypeError, ValueError) as error:
                answer, status = {"error": f"{type(error).__name__}: {error}"}, 400
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _tensor(values):
    if values and isinstance(values[0], dict):
        return tf.constant([base64.b64decode(value["b64"]) for value in values])
    return tf.constant(values)


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m tools.stand_in",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="what `halo export` wrote")
    parser.add_argument("--grpc-port", type=int, default=8500, help="default: 8500; 0: a free one")
    parser.add_argument("--rest-port", type=int, default=8501, help="default: 8501; 0: a free one")
    options = parser.parse_args(argv)
    versions = [p for p in options.folder.glob("*") if p.name.isdecimal()]
    if not versions:
        print(f"error: {options.folder}: expected a folder of `halo export`", file=sys.stderr)
        return 2
    service = SavedModelService(max(versions, key=lambda path: int(path.name)))
    with (
        grpc_server(service, options.grpc_port) as address,
        rest_server(service, options.rest_port) as url,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(f"a stand-in for TensorFlow Serving: gRPC {address}, REST {url}", flush=True)
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
