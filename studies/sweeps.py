"""The papers' ablations: the rows of each sweep, a recipe and its flags."""

import daa_coco
import dive_coco
import gaussian_vsepp_coco
import pcme_cub
import pcmepp_coco
import pvse_cub
import vse_coco
from studies.seed_table import Row


def rows_of(main, variants):
    """`{name: Row}` of a recipe's variants, `{name: flags}`."""
    return {name: Row(main, tuple(flags)) for name, flags in variants.items()}


def with_and_without(flags):
    """All combinations of some parts: `{"VIB, PP": [flags that switch off the others]}`."""
    variants = {}
    for chosen in range(2 ** len(flags) - 1, -1, -1):
        kept = [name for place, name in enumerate(flags) if chosen >> place & 1]
        off = [flag for name, flag in flags.items() if name not in kept]
        variants[", ".join(kept) or "none of them"] = off
    return variants


FT = "--fine-tuning-epochs=15"
SIMILARITIES = {
    "kl": "KL",
    "min_kl": "least KL",
    "wasserstein_2": "W2",
    "reverse_kl": "KL the other way",
}
ONE, WHOLE = ("--mixing-beta=1",), "--mix-whole-batches"
SWEEPS = {
    "pcme_regularisers": rows_of(  # table D.1: KL and uniformity, with and without
        pcme_cub.main,
        with_and_without({"KL": "--kl-weight=0", "uniformity": "--uniformity-weight=0"}),
    ),
    "pcme_covariance": rows_of(  # table D.2
        pcme_cub.main,
        {
            "σ of each dimension": [],
            "one σ, mean of the variances": ["--covariance=spherical_mean"],
            "one σ, one value": ["--covariance=spherical_one"],
            "μ only": ["--mean-only"],
        },
    ),
    "pcme_heads": rows_of(  # table D.3
        pcme_cub.main,
        {
            "attention in μ and σ": [],
            "attention in μ": ["--no-variance-attention"],
            "attention in σ": ["--no-mean-attention"],
            "no attention": ["--no-mean-attention", "--no-variance-attention"],
            "attention in μ and σ, σ squashed": ["--squash-variance"],
        },
    ),
    "pcme_samples": rows_of(  # figure D.2
        pcme_cub.main,
        {
            **{f"J = {count}": [f"--num-samples={count}"] for count in (1, 3, 7, 15)},
            "without noise": ["--method=moment_matched"],
        },
    ),
    "pcme_dimensions": rows_of(  # figure D.3
        pcme_cub.main,
        {f"D = {dim}": [f"--dim={dim}"] for dim in (8, 16, 32, 64, 128, 256, 512, 1024)},
    ),
    "pvse_mining": rows_of(  # PCME, figure E.2
        pvse_cub.main,
        {
            f"K = {count}, {name}": [f"--num-embeddings={count}", f"--mining={mining}"]
            for count in (1, 2, 4)
            for mining, name in (("hardest", "hardest negatives"), ("sum", "all negatives"))
        },
    ),
    "gaussian_similarity": rows_of(  # Pishdad et al., tables 5 and 6
        gaussian_vsepp_coco.main,
        {
            f"{name}, {shape.replace('_', ' ')}": [f"--similarity={key}", f"--covariance={shape}"]
            for key, name in SIMILARITIES.items()
            for shape in ("spherical_mean", "spherical_one", "ellipsoidal")
        },
    ),
    "gaussian_vse": rows_of(  # Pishdad et al., tables 1, 2 and 7 by its COCO recipes
        vse_coco.main,
        {"VSE++": [], "VSE++ of twice the dimension": ["--dim=2048"], "VSE++ ft": [FT]},
    )
    | rows_of(
        gaussian_vsepp_coco.main,
        {"Gaussian VSE++": [], "Gaussian VSE++ ft": [FT, "--similarity=min_kl"]},
    ),
    "daa_terms": rows_of(  # DAA, table 4; the paper prints no weight of Smooth-AP
        daa_coco.main,
        {
            "PCME-BERT": ["--daa-weight=0"],
            "PCME-BERT + Smooth-AP": ["--daa-weight=0", "--smooth-ap-weight=1000"],
            "PCME-BERT + DAA": [],
        },
    ),
    "dive_sets": rows_of(  # tables 3 and 4
        dive_coco.main,
        {
            "K = 4, T = 4, smooth-Chamfer, α = 16": [],
            "MIL": ["--similarity=maximum_pair"],
            "MP": ["--similarity=set_match_probability"],
            "Chamfer": ["--similarity=chamfer"],
            "PIE-Net": ["--method=pvse", "--similarity=smooth_chamfer", "--diversity-weight=0.01"],
            "Transformer": ["--normalize-over=positions"],
            **{f"K = {count}": [f"--num-slots={count}"] for count in (1, 2, 3, 5, 6)},
            **{f"T = {count}": [f"--num-iterations={count}"] for count in (1, 2, 3, 5, 6)},
            **{f"α = {alpha}": [f"--alpha={alpha}"] for alpha in (1, 2, 4, 8, 32, 64)},
        },
    ),
    "pcmepp_distance": rows_of(  # table 4: of the new techniques VIB alone
        pcmepp_coco.main,
        {
            "W2": ["--method=wasserstein_2"],
            "match probability (PCME)": ["--method=pcme"],
            "CSD": ["--pseudo-positive-weight=0", "--mixed-share=0", "--averaged-epochs=0"],
        },
    ),
    "pcmepp_architecture": rows_of(  # table 5, without SWA; blocks are those of CLIP's backbones
        pcmepp_coco.main,
        {
            name: ["--backbone=vit_b_32", "--averaged-epochs=0", *flags]
            for name, flags in {
                "1 block for σ, mean pooling": ["--pooling=mean"],
                "2 blocks for σ, GPO": ["--variance-blocks=2"],
                "1 block for σ, GPO": [],
            }.items()
        },
    ),
    "pcmepp_loss": rows_of(  # table 3
        pcmepp_coco.main,
        with_and_without(
            {
                "VIB": "--kl-weight=0",
                "pseudo-positives": "--pseudo-positive-weight=0",
                "mixed samples": "--mixed-share=0",
            }
        ),
    ),
    "pcmepp_alpha": rows_of(  # table C.2
        pcmepp_coco.main,
        {
            f"α = {alpha}": [f"--pseudo-positive-weight={alpha}", "--averaged-epochs=0"]
            for alpha in (0.1, 0.5, 2, 5, 10)
        },
    ),
    "pcmepp_mixing": rows_of(  # table C.3
        pcmepp_coco.main,
        {
            name: ["--averaged-epochs=0", *flags]
            for name, flags in {
                "Mixup alone": ["--mixup=1"],
                "CutMix alone": ["--mixup=0"],
                "λ of Beta(1, 1), 50 %, whole batches": [*ONE, "--mixed-share=0.5", WHOLE],
                "λ of Beta(1, 1), whole batches": [*ONE, WHOLE],
                "λ of Beta(2, 2), whole batches": [WHOLE],
                "λ of Beta(1, 1), 50 %": [*ONE, "--mixed-share=0.5"],
                "λ of Beta(2, 2)": [],
            }.items()
        },
    ),
}
