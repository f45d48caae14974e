"""`assets.extra/tf_serving_warmup_requests`: what the server runs before it says it is ready."""

import tensorflow as tf

from export import probes
from export.serving_files import NAME
from halo_search.errors import require

BATCHES = (1, 8)
MATCH_OUTPUTS = ("similarity", "pairs")


def write_warmup(folder, signatures, tokenizer=None, batch_size=None):
    """Writes PredictionLog records for every signature.

    A failing record keeps the server from loading the model, and a server that merges requests
    refuses `match` as a whole (see `Signatures`). Its record asks for the outputs that
    `export.grpc_client` asks for, and what is not the whole signature is not merged.

    Args:
        folder: of the version.
        signatures: `{name: concrete function}`.
        tokenizer: whose words the captions have.
        batch_size: the one size of a batch, or None for some.

    Raises:
        MissingPackageError: if tensorflow-serving-api is not installed.
    """
    predict_pb2 = require("tensorflow_serving.apis.predict_pb2", extra="models")
    prediction_log_pb2 = require("tensorflow_serving.apis.prediction_log_pb2", extra="models")
    path = folder / "assets.extra" / "tf_serving_warmup_requests"
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name, function in signatures.items():
            outputs = MATCH_OUTPUTS if name == "match" else ()
            for count in [batch_size] if batch_size else BATCHES:
                request = predict_pb2.PredictRequest(output_filter=outputs)
                request.model_spec.name = NAME
                request.model_spec.signature_name = name
                for argument, value in request_inputs(function, count, tokenizer).items():
                    request.inputs[argument].CopyFrom(tf.make_tensor_proto(value))
                log = prediction_log_pb2.PredictionLog(
                    predict_log=prediction_log_pb2.PredictLog(request=request)
                )
                writer.write(log.SerializeToString())


def request_inputs(function, count, tokenizer=None):
    """`{argument: array}` of a valid request with `count` items for a signature."""
    arguments = {}
    for spec in function.structured_input_signature[0]:
        if spec.name == "images":
            arguments["images"] = tf.constant(probes.pictures(count))
        elif spec.name == "captions" and spec.dtype == tf.string:
            arguments["captions"] = tf.constant(probes.sentences(count, tokenizer))
        else:
            arguments[spec.name] = tf.constant(probes.numbers(count, spec.shape[1:]))
    return arguments
