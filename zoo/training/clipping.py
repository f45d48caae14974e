"""Gradient clipping across replicas: of the sum, as one device would clip it."""

import keras


def clip_the_sum(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer clip the gradients after they are summed over the replicas.

    Keras clips those of each replica and sums then (3.15.1), so that `global_clipnorm` bounds
    another gradient than on one device, `num_replicas` times as large. Nothing changes for an
    optimizer that does not clip.

    Args:
        optimizer: a Keras optimizer whose steps are computed by replicas.
    """
    if getattr(optimizer, "_clips_the_sum", False):
        return
    clip, add = optimizer._clip_gradients, optimizer._all_reduce_sum_gradients

    def add_and_clip(gradients_and_variables):
        gradients, variables = zip(*add(gradients_and_variables), strict=True)
        return list(zip(clip(list(gradients)), variables, strict=True))

    optimizer._clip_gradients = lambda gradients: gradients
    optimizer._all_reduce_sum_gradients = add_and_clip
    optimizer._clips_the_sum = True
