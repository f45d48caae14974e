"""The methods of `own_vectors.py`: what becomes of two arrays of vectors."""

from halo_search.errors import InputError
from zoo import encoders, models, similarities

import numpy as np

POSITIONS = 4  # local features that the slots of a set choose among
FIRST_SPREAD = 0.01  # of the linear map to log σ², beside its usual start


def as_they_are(settings, train):
    return models.vector_points(same_width(settings, train))


def infonce(settings, train):
    return from_identity(models.infonce(**towers(settings, train)))


def pfe(settings, train):
    """Variances over the vectors, which stay as they are."""
    return models.pfe(as_they_are(settings, train))


def pcmepp(settings, train):
    return from_identity(models.pcmepp(**towers(settings, train)))


def gaussian(settings, train):
    """Pishdad et al.: a Gaussian out of a point model, by Wasserstein-2 and triplets."""
    points = models.vse_infinity(mining="semi_hard", **towers(settings, train))
    model = models.gaussian(from_identity(points), similarity=similarities.KLDivergence())
    for tower in (model.image_encoder, model.caption_encoder):
        kernel = tower.get_layer("variance_head").mean_map.kernel
        kernel.assign(FIRST_SPREAD * kernel)  # KL divides by variances, which would rank alone
    return model


def dive(settings, train):
    """Sets by slots over learned projections of each vector."""
    image_dim, caption_dim = widths(train)
    return models.dive(
        encoders.vectors(image_dim, normalize=True, positions=POSITIONS),
        caption_backbone=encoders.vectors(caption_dim, normalize=True, positions=POSITIONS),
        dim=settings.dim or caption_dim,
        mining="semi_hard",
    )


# Functions `(settings, train split) -> DualEncoder`; "none" is not trained.
METHODS = {
    "none": as_they_are,
    "pfe": pfe,
    "infonce": infonce,
    "pcmepp": pcmepp,
    "gaussian": gaussian,
    "dive": dive,
}


def widths(train):
    """`(image_dim, caption_dim)` of a split's vectors."""
    return train.source.shape[0], train.records.caption_vectors.shape[0]


def same_width(settings, train):
    """The one width of both sides, for methods that train no projection. Raises InputError if they
    differ."""
    image_dim, caption_dim = widths(train)
    if image_dim != caption_dim:
        raise InputError(
            f"--method {settings.method} compares the vectors as they are, so both sides must be "
            f"of one width; received {image_dim} and {caption_dim}. --method infonce learns to "
            "compare them"
        )
    return image_dim


def towers(settings, train):
    """The options of a builder of pooled towers: there is one feature an item, and no words."""
    image_dim, caption_dim = widths(train)
    return {
        "image_backbone": encoders.vectors(image_dim, normalize=True),
        "caption_backbone": encoders.vectors(caption_dim, normalize=True),
        "dim": settings.dim or caption_dim,
        "pooling": "mean",
        "drop_rate": 0.0,
    }


def from_identity(model):
    """The model whose means begin as the vectors themselves where the widths allow it.

    Vectors of one space are then ranked as before at the first step, and training only adds.
    """
    for tower in (model.image_encoder, model.caption_encoder):
        kernel = tower.get_layer("head").mean_map.kernel
        if kernel.shape[0] == kernel.shape[1]:
            kernel.assign(np.eye(kernel.shape[0]))
    return model
