"""A test server: PredictionService over gRPC and REST that runs a SavedModel in this process.

It stands in for TensorFlow Serving where that cannot run. It knows no versions, no batching and no
warm-up; what it shares with the real one is the wire format and the signatures.
"""

import base64
import contextlib
import http.server
import json
import threading
from concurrent import futures

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

_LARGEST_MESSAGE = 256 << 20


class SavedModelService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, folder):
        self.loaded = tf.saved_model.load(str(folder))  # must stay referenced
        self.signatures = self.loaded.signatures

    def run(self, name, inputs):
        """Arrays of a signature; inputs are made what the signature says, or refused."""
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
def grpc_server(service):
    """Yields the address of a server on a free port of the loopback."""
    options = [(f"grpc.max_{way}_message_length", _LARGEST_MESSAGE) for way in ("send", "receive")]
    server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait(10)


@contextlib.contextmanager
def rest_server(service):
    """Yields the URL of a server that takes TensorFlow Serving's JSON, on a free port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            inputs = {name: _tensor(values) for name, values in request["inputs"].items()}
            try:
                outputs = service.run(request.get("signature_name"), inputs)
                answer = {"outputs": {name: value.tolist() for name, value in outputs.items()}}
                status = 200
            except tf.errors.OpError as error:
                answer, status = {"error": error.message}, 400
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
