"""The methods of `own_vectors.py`: the models that are trained on two arrays of vectors."""

from halo_search.errors import InputError
from zoo import encoders, models, similarities

import numpy as np

POSITIONS = 4  # local features that the slots of a set choose among
FIRST_SPREAD = 0.01  # of the linear map to log σ², beside its usual start


def as_they_are(settings, train_split):
    """The vectors themselves, compared by the cosine."""
    return models.vector_points(same_width(settings, train_split))


def infonce(settings, train_split):
    """Linear maps of the vectors, trained by InfoNCE."""
    return from_identity(models.infonce(**towers(settings, train_split)))


def pfe(settings, train_split):
    """Variances over the vectors, which stay as they are."""
    return models.pfe(as_they_are(settings, train_split))


def pcmepp(settings, train_split):
    """PCME++'s Gaussians out of linear maps of the vectors."""
    return from_identity(models.pcmepp(**towers(settings, train_split)))


def gaussian(settings, train_split):
    """Pishdad et al.: a Gaussian out of a point model, by Wasserstein-2 and triplets."""
    points = models.vse_infinity(mining="semi_hard", **towers(settings, train_split))
    model = models.gaussian(from_identity(points), similarity=similarities.KLDivergence())
    for tower in (model.image_encoder, model.caption_encoder):
        kernel = tower.get_layer("variance_head").mean_map.kernel
        kernel.assign(FIRST_SPREAD * kernel)  # KL divides by variances, which would rank alone
    return model


def dive(settings, train_split):
    """Sets by slots over learned projections of each vector."""
    image_dim, caption_dim = widths(train_split)
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


def widths(train_split):
    """`(image_dim, caption_dim)` of a split's vectors."""
    return train_split.source.shape[0], train_split.records.caption_vectors.shape[0]


def same_width(settings, train_split):
    """The one width of both sides, for methods that train no projection. Raises InputError if they
    differ."""
    image_dim, caption_dim = widths(train_split)
    if image_dim != caption_dim:
        raise InputError(
            f"--method {settings.method} compares the vectors as they are, so both sides must be "
            f"of one width; received {image_dim} and {caption_dim}. --method infonce learns to "
            "compare them"
        )
    return image_dim


def towers(settings, train_split):
    """The options of a builder of pooled towers: there is one feature an item, and no words."""
    image_dim, caption_dim = widths(train_split)
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
