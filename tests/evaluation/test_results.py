import numpy as np

import synthetic_run
from zoo import metrics
from zoo.evaluation import results


def test_the_first_images_are_a_gallery_of_their_own():
    """As VSE++'s code validates: the first 5,000 captions of COCO's 25,000, and their images."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 24)) + 3 * np.repeat(np.eye(12), 2, axis=1)
    found = results.first_images(scores, synthetic_run.records(12, 2, labels=12), 4)
    truth = np.arange(4)[:, None] == np.repeat(np.arange(4), 2)
    assert found == metrics.evaluate_retrieval(scores[:4, :8], truth)
    whole = metrics.evaluate_retrieval(scores, np.arange(12)[:, None] == np.repeat(range(12), 2))
    assert found["rsum"] > whole["rsum"]  # what would be compared with the paper otherwise
