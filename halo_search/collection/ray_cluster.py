"""The connection to a Ray cluster, and units that run on it."""

import contextlib
import logging
import os
import pickle
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from halo_search.collection.units import Encode, Job, Unit
from halo_search.errors import InputError, MissingPackageError, require

AUTO = "auto"
_MOST_BLOCKS = 4096


class Cluster:
    """The Ray cluster that this process is connected to."""

    def __init__(self, ray: Any):
        self._ray = ray

    def actors(self, may_use_gpu: bool) -> tuple[int, dict[str, float]]:
        """How many actors there is room for now, and what each needs."""
        resources = self._ray.cluster_resources()
        if may_use_gpu and resources.get("GPU", 0) >= 1:
            return int(resources["GPU"]), {"num_cpus": 1, "num_gpus": 1}
        return max(1, int(resources.get("CPU", 1))), {"num_cpus": 1}


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Yields the cluster at an address, see `encode_on_cluster`. A connection that exists is used,
    and stays. Raises InputError if no cluster answers."""
    require_ray_data()
    ray = require("ray", extra="cluster")
    if ray.is_initialized():
        yield Cluster(ray)
        return
    if address != AUTO:
        _check_listens(address)
    options = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=None if address == AUTO else address, **options)
    except Exception as error:  # a refused connection, a wrong address, other versions of Ray
        raise InputError(f"--cluster {address}: {_one_line(error)}") from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _check_listens(address):
    """Raises InputError where nothing listens at `host:port`: Ray itself waits for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return  # Ray says what is wrong with it
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--cluster {address}: no Ray cluster answers there: {reason}") from error


def require_ray_data():
    """The module `ray.data`; a MissingPackageError without the extra `cluster`."""
    # Ray sends usage statistics by default, and reads this once.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return require("ray.data", extra="cluster")


def run(job: Job, units: Sequence[Unit], resources: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Encodes units on the cluster that this process is connected to, and yields what became of
    each, in the order in which they end."""
    data = require_ray_data()
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    # The job travels with each unit: constructor arguments would be lost with the node that holds
    # them.
    rows = [{"number": n, "unit": pickle.dumps((job, unit))} for n, unit in enumerate(units)]
    dataset = data.from_items(rows, override_num_blocks=min(len(rows), _MOST_BLOCKS))
    pool = data.ActorPoolStrategy(min_size=1, max_size=len(units))
    dataset = dataset.map(Encode, compute=pool, **resources)
    try:
        for row in dataset.iter_rows():
            result = pickle.loads(row["result"])
            if "error" in result:
                kind = MissingPackageError if result["is_missing"] else InputError
                raise kind(result["error"])
            yield result
    except (InputError, MissingPackageError):
        raise
    except Exception as error:
        raise _in_a_sentence(error) from error


def _in_a_sentence(error):
    """An error of Ray's own, or of code on a node, as the user can act on it."""
    cause, text = getattr(error, "cause", None) or error, _one_line(error)
    missing = cause if isinstance(cause, ModuleNotFoundError) else None
    if missing is not None or "No module named" in text:
        return MissingPackageError(
            f"--cluster: a node cannot import a package ({_one_line(missing or error)}); install "
            'the same "halo-zoo[cluster]" on all nodes'
        )
    return InputError(f"--cluster: the job failed: {text}")


def _one_line(error):
    """The last line of an error, where Ray says what happened, else its class's name."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
