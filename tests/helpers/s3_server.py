"""An S3 server on the loopback, by moto."""

import contextlib
import os

VARIABLES = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextlib.contextmanager
def s3_server(bucket):
    """Yields the environment by which clients reach a new server that holds an empty bucket."""
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {**VARIABLES, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        system = fs.S3FileSystem(
            endpoint_override=variables["AWS_ENDPOINT_URL"], allow_bucket_creation=True
        )
        system.create_dir(bucket)
        yield variables
    finally:
        server.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
