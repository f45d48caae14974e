"""Pishdad et al., tables 1 to 3 and 5 to 8: points, Gaussians, similarities, five seeds."""

import gaussian_vsepp_coco
import gaussian_vsepp_flickr30k
import gaussian_vsrn_flickr30k
import vse_coco
import vse_flickr30k
import vsrn_flickr30k
from studies import columns
from studies.seed_table import Sweep, rows_of

FT = "--fine-tuning-epochs=15"
SHAPES = ("spherical_mean", "spherical_one", "ellipsoidal")
SIMILARITIES = {  # the last one is table 6, the others are table 5
    "kl": "KL",
    "min_kl": "least KL",
    "wasserstein_2": "W2",
    "reverse_kl": "KL the other way",
}
COCO_1K_AND_5K = tuple(
    columns.of_coco(truth, metric)
    for truth in ("coco_1k", "coco_5k")
    for metric in ("pmrp", *columns.RECALLS)
)
RPC2 = tuple(
    columns.of_coco(truth, metric)
    for truth in ("cxc_1k", "cxc")
    for metric in ("r_precision", *columns.RECALLS)
)
TABLES_1_AND_2 = (*columns.STABILITY, *COCO_1K_AND_5K, *RPC2)


def similarities(main, *flags):
    """Every similarity with every shape of the covariance."""
    variants = {
        f"{name}, {shape.replace('_', ' ')}": [
            f"--similarity={key}",
            f"--covariance={shape}",
            *flags,
        ]
        for key, name in SIMILARITIES.items()
        for shape in SHAPES
    }
    return Sweep(rows_of(main, variants), columns.VALIDATION)


TWICE = "of twice the dimension (†)"
VSE_POINTS = {"VSE++": [], f"VSE++ {TWICE}": ["--dim=2048"], "VSE++ ft": [FT]}
VSRN_POINTS = {"VSRN": [], f"VSRN {TWICE}": ["--dim=4096"]}
FLICKR30K = (*map(columns.whole_split, columns.RECALLS), columns.whole_rsum())

SWEEPS = {
    "gaussian_similarity": similarities(gaussian_vsepp_coco.main),
    "gaussian_similarity_ft": similarities(gaussian_vsepp_coco.main, FT),
    "gaussian_similarity_vsrn": similarities(gaussian_vsrn_flickr30k.main),
    "gaussian_vse": Sweep(  # tables 1, 2 and 7 on COCO
        rows_of(vse_coco.main, VSE_POINTS)
        | rows_of(
            gaussian_vsepp_coco.main,
            {"Gaussian VSE++": [], "Gaussian VSE++ ft": [FT, "--similarity=min_kl"]},
        ),
        TABLES_1_AND_2,
    ),
    "gaussian_vsrn": Sweep(  # tables 1, 2 and 8 on COCO's regions
        rows_of(vsrn_flickr30k.main, VSRN_POINTS)
        | rows_of(gaussian_vsrn_flickr30k.main, {"Gaussian VSRN": ["--covariance=ellipsoidal"]}),
        TABLES_1_AND_2,
    ),
    "gaussian_vse_f30k": Sweep(  # tables 3 and 7
        rows_of(vse_flickr30k.main, VSE_POINTS)
        | rows_of(gaussian_vsepp_flickr30k.main, {"Gaussian VSE++": [], "Gaussian VSE++ ft": [FT]}),
        FLICKR30K,
    ),
    "gaussian_vsrn_f30k": Sweep(  # tables 3 and 8
        rows_of(vsrn_flickr30k.main, VSRN_POINTS)
        | rows_of(gaussian_vsrn_flickr30k.main, {"Gaussian VSRN": []}),
        FLICKR30K,
    ),
}
