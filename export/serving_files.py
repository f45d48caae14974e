"""What TensorFlow Serving reads beside a SavedModel: its configurations and a compose file."""

from halo_search.files.atomic import write_text

NAME = "halo"
MAX_BATCH = 32
# The server's releases carry TensorFlow's numbers; an older one may lack an operation.
IMAGE = "tensorflow/serving:2.21.0"
GRPC_PORT, REST_PORT = 8500, 8501


def write_server_files(folder):
    """`models.config`, `monitoring.config` and `compose.yaml`, beside the versions."""
    write_text(folder / "models.config", _MODELS)
    write_text(folder / "monitoring.config", _MONITORING)
    write_text(folder / "compose.yaml", _COMPOSE)


def write_batching(folder, batch_size=None):
    """`batching_params.pbtxt` in the folder of a version, where the server looks for it.

    Args:
        folder: of the version.
        batch_size: the one size that the signatures take, or None for any.
    """
    sizes = [batch_size] if batch_size else [2**power for power in range(MAX_BATCH.bit_length())]
    lines = [
        f"max_batch_size {{ value: {sizes[-1]} }}",
        "batch_timeout_micros { value: 2000 }",
        "max_enqueued_batches { value: 128 }",
        *(f"allowed_batch_sizes: {size}" for size in sizes),
    ]
    write_text(folder / "batching_params.pbtxt", "\n".join(lines) + "\n")


_MODELS = f"""\
model_config_list {{
  config {{
    name: "{NAME}"
    base_path: "/models/{NAME}"
    model_platform: "tensorflow"
    model_version_policy {{ latest {{ num_versions: 1 }} }}
  }}
}}
"""

_MONITORING = """\
prometheus_config {
  enable: true
  path: "/monitoring/prometheus/metrics"
}
"""

_COMPOSE = f"""\
# `docker compose up` in this folder serves the highest version in it, and follows new ones.
services:
  serving:
    image: ${{TF_SERVING_IMAGE:-{IMAGE}}}
    ports:
      - "127.0.0.1:${{GRPC_PORT:-{GRPC_PORT}}}:{GRPC_PORT}" # gRPC
      - "127.0.0.1:${{REST_PORT:-{REST_PORT}}}:{REST_PORT}" # REST
    volumes:
      - ".:/models/{NAME}:ro"
    command:
      - --model_config_file=/models/{NAME}/models.config
      - --model_config_file_poll_wait_seconds=60
      - --monitoring_config_file=/models/{NAME}/monitoring.config
      - --enable_batching=true
      - --enable_per_model_batching_parameters=true
    healthcheck:
      test: ["CMD", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/{REST_PORT}"]
      interval: 5s
      retries: 24
    restart: unless-stopped
"""
