"""Encodes a source by an Apache Beam pipeline: Dataflow, Flink, Spark, or this machine's cores."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from zoo.collection.encoding import encode_work
from zoo.collection.job import begin, finish
from zoo.collection.shards import Encoded, write_shard
from zoo.collection.work import Work
from zoo.errors import InputError
from zoo.models import Tower

REJECTED = "rejected"
_COUNTED = "halo"  # the namespace of the pipeline's counters


class TowerHandler(ModelHandler[Work, Encoded, Tower]):
    """How `RunInference` loads a `zoo.Tower`, once per process, and asks it.

    An example is the work of a whole shard. Beam's own batches would have other items in every
    run, and a shard that is written again has to be the same; so the tower makes the batches.

    Args:
        model: what `zoo.Tower` takes; workers have to reach it too.
        side: `"images"` or `"captions"`.
        batch_size: pictures at once.
    """

    def __init__(self, model: str, side: str, batch_size: int = 64):
        super().__init__()
        self._arguments = (str(model), side, batch_size)

    def load_model(self) -> Tower:
        return Tower(*self._arguments)

    def run_inference(
        self, batch: Sequence[Work], model: Tower, inference_args: Any = None
    ) -> Iterable[PredictionResult]:
        return [PredictionResult(work, encode_work(model, work)) for work in batch]

    def batch_elements_kwargs(self) -> dict[str, int]:
        return {"min_batch_size": 1, "max_batch_size": 1}

    def get_metrics_namespace(self) -> str:
        return _COUNTED


class WriteShard(beam.DoFn):
    """Writes each shard when it is encoded. Its rejected items are a side output, and counted."""

    def __init__(self, folder: str, dtype: str):
        self._folder, self._dtype = str(folder), dtype

    def process(self, result: PredictionResult) -> Iterable[Any]:
        work, encoded = result.example, result.inference
        write_shard(self._folder, work.number, encoded, self._dtype)
        Metrics.counter(_COUNTED, "items").inc(len(encoded.names))
        for item in encoded.rejected:
            Metrics.counter(_COUNTED, REJECTED).inc()
            yield beam.pvalue.TaggedOutput(REJECTED, item)
        yield work.number, len(encoded.names)


def pipeline_of(
    pipeline: beam.Pipeline, pieces: Sequence[Work], handler: ModelHandler, folder: Any, dtype: str
) -> beam.pvalue.DoOutputsTuple:
    """Puts the encoding into a pipeline, which the caller runs.

    `pieces` is the work that is left, of `begin`; workers reach the folder of the shards too. The
    outputs are `written`, `(shard, items)`, and `rejected`, `(name, reason)`.
    """
    return (
        pipeline
        | "work" >> beam.Create(list(pieces), reshuffle=True)
        | "encode" >> RunInference(handler)
        | "write" >> beam.ParDo(WriteShard(folder, dtype)).with_outputs(REJECTED, main="written")
    )


def encode_on(
    runner: Any,
    pieces: Sequence[Work],
    handler: ModelHandler,
    folder: Any,
    identity: dict[str, Any],
    dtype: str = "float32",
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Encodes by a runner and waits for it.

    A bundle that a runner tries again, or runs twice, writes the same shard again under the same
    name, by one rename: so the output is there exactly once. What an earlier call has written is
    not encoded again.

    Args:
        runner: a name that Beam knows, `"DataflowRunner"`, or a runner.
        pieces, identity, dtype: as of `zoo.collection.encode`.
        handler: a `TowerHandler`.
        folder: of the shards.
        options: flags of the runner, `["--flink_master=host:8081"]`.

    Returns:
        The manifest.

    Raises:
        InputError: as `zoo.collection.encode`, or if a flag is unknown.
        RuntimeError: if the pipeline fails.
    """
    check_flags(options)
    left = begin(folder, pieces, {**identity, "dtype": dtype})
    if left:
        pipeline = beam.Pipeline(runner=runner, options=PipelineOptions(list(options)))
        pipeline_of(pipeline, left, handler, folder, dtype)
        pipeline.run().wait_until_finish()
    return finish(folder, pieces)


def check_flags(flags: Sequence[str]) -> None:
    """Refuses, by an InputError, flags that no runner here knows, which Beam itself would drop."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    _, unknown = parser.parse_known_args(list(flags))
    if unknown:
        raise InputError(f"Apache Beam knows no flag {unknown[0]!r}")
