"""DivE, section 4.4: what it costs to compare one image with one caption, in operations.

    python -m studies.similarity_flops                          # K = 4, D = 1024, as the paper

Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings", CVPR 2023. The paper
prints 16.4 K for smooth-Chamfer on two sets of four elements, 1.24 M for SCAN. Here TensorFlow's
profiler counts what the compiled graph of the similarity does, a multiplication and an addition
each, scaling the elements to unit length included. The paper's 16.4 K are the 4 × 4 × 1024 products
of the elements, a multiplication with its addition as one. SCAN is not in the zoo.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from studies.seed_table import publish
from zoo import cli, similarities
from zoo.cli import Size, setting


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The sizes."""

    out: Path = setting(Path("runs/similarity_flops"), "folder of table.md")
    dim: Size = setting(1024, "dimensions of an element", source="DivE, section 4.2")
    num_slots: Size = setting(4, "elements of a set, K", source="DivE, section 4.2")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    counts = {name: operations(*of_one) for name, of_one in compared(settings).items()}
    lines = ["| similarity of one pair | operations |", "|---|---|"]
    lines += [f"| {name} | {count:,} |" for name, count in counts.items()]
    products = settings.num_slots**2 * settings.dim
    lines += ["", f"Products of the elements alone: {products:,} multiplications with additions."]
    publish(settings, "\n".join([*lines, ""]))
    return counts | {"products": products}


def compared(settings):
    """`{name: (similarity, image, caption)}`, of one item each."""
    rng = np.random.default_rng(0)
    shape = 2, 1, settings.num_slots, settings.dim
    sets = [{"elements": embedding} for embedding in rng.normal(size=shape).astype("float32")]
    points = [{"mean": embedding["elements"][:, 0]} for embedding in sets]
    return {
        "cosine": (similarities.Cosine(), *points),
        "smooth-Chamfer (DivE)": (similarities.SmoothChamfer(), *sets),
        "maximum pair (PVSE)": (similarities.MaximumPair(), *sets),
    }


def operations(similarity, image, caption):
    """Multiplications and additions of one call, by TensorFlow's profiler."""
    image, caption = (
        {name: tf.constant(values) for name, values in embedding.items()}
        for embedding in (image, caption)
    )
    similarity(image, caption)  # makes its weights
    graph = tf.function(lambda: similarity(image, caption)).get_concrete_function().graph
    options = tf.compat.v1.profiler.ProfileOptionBuilder(
        tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    )
    options = options.with_empty_output().build()
    return tf.compat.v1.profiler.profile(graph, options=options).total_float_ops


if __name__ == "__main__":
    cli.run(main)
