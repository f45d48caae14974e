"""A Tower in Ray Data, on its local engine."""

import numpy as np
import pytest

import zoo

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")


class Encode:
    """One actor: the tower is made once, and encodes batch after batch."""

    def __init__(self, tower):
        self.tower = tower

    def __call__(self, batch):
        found = self.tower.of_texts([str(text) for text in batch["text"]])
        return {"text": batch["text"], "mean": found["mean"]}


@pytest.mark.very_slow  # starts a cluster, whose worker imports everything again
def test_map_batches_gives_what_the_tower_gives(tmp_path):
    tower = zoo.Tower("toy_birds_pfe", "captions", batch_size=300)
    texts = [f"a bird with {count} red wing bars" for count in range(40)]
    with ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False):
        rows = ray.data.from_items([{"text": text} for text in texts])
        encoded = rows.map_batches(
            Encode, fn_constructor_args=(tower,), batch_size=16, concurrency=1
        )
        found = {row["text"]: row["mean"] for row in encoded.take_all()}
    expected = tower.of_texts(texts)["mean"]
    np.testing.assert_allclose([found[text] for text in texts], expected, atol=1e-6)
