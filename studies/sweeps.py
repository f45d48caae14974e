"""The papers' ablations: the rows of each sweep, a recipe and its flags, and what is printed."""

import daa_coco
import dive_coco
import pcmepp_coco
import pcmepp_noisy_coco
from studies import columns, gaussian_sweeps, pcme_sweeps
from studies.seed_table import Sweep, rows_of, with_and_without

ONE, WHOLE = ("--mixing-beta=1",), "--mix-whole-batches"
NO_SWA = "--averaged-epochs=0"


def of_pcmepp(variants, *common):
    """A sweep of PCME++ with the seven columns of its tables."""
    rows = {name: [*common, *flags] for name, flags in variants.items()}
    return Sweep(rows_of(pcmepp_coco.main, rows), columns.PCMEPP)


METHODS = rows_of(
    pcmepp_coco.main,
    {
        "PCME++": [],
        "μ only": ["--method=mean_only"],
        "W2 as training distance": ["--method=wasserstein_2"],
        "PCME": ["--method=pcme"],
        "CSD without pseudo-positives, mixed samples, SWA": [
            "--pseudo-positive-weight=0",
            "--mixed-share=0",
            NO_SWA,
        ],
        "InfoNCE": ["--method=infonce"],
        "VSE∞": ["--method=vse_infinity"],
        "PCME++ without VIB": ["--kl-weight=0"],
        "PCME++ without pseudo-positives": ["--pseudo-positive-weight=0"],
        "PCME++ without mixed samples": ["--mixed-share=0"],
        "PCME++ without SWA": [NO_SWA],
        "PCME++ without GPO (mean pooling)": ["--pooling=mean"],
    },
)
METHODS |= rows_of(
    pcmepp_noisy_coco.main,
    {
        f"{round(100 * noise)} % shuffled: {name}": [f"--noise={noise}", *flags]
        for noise in (0.2, 0.5)
        for name, flags in {
            "PCME++": [],
            "PCME": ["--method=pcme"],
            "InfoNCE": ["--method=infonce"],
            "VSE∞, hardest negatives": ["--method=vse_infinity"],
        }.items()
    },
)
PARTS = {  # of PCME++
    "VIB": "--kl-weight=0",
    "pseudo-positives": "--pseudo-positive-weight=0",
    "mixed samples": "--mixed-share=0",
}

SWEEPS = {
    **pcme_sweeps.SWEEPS,
    **gaussian_sweeps.SWEEPS,
    "pcmepp_methods": Sweep(  # PCME++, tables 1 and C.9, 2; below them C.7 and C.8, C.5 and C.6
        METHODS, columns.PCMEPP, more=(columns.PCMEPP_SIDES, columns.PCMEPP_MORE)
    ),
    "daa_terms": Sweep(  # DAA, table 4; the paper prints no weight of Smooth-AP
        rows_of(
            daa_coco.main,
            {
                "PCME-BERT": ["--daa-weight=0"],
                "PCME-BERT + Smooth-AP": ["--daa-weight=0", "--smooth-ap-weight=2000"],
                "PCME-BERT + DAA": [],
            },
        ),
        columns.DAA,
    ),
    "dive_sets": Sweep(  # DivE, tables 3 and 4
        rows_of(
            dive_coco.main,
            {
                "K = 4, T = 4, smooth-Chamfer, α = 16": [],
                "MIL": ["--similarity=maximum_pair"],
                "MP": ["--similarity=set_match_probability"],
                "Chamfer": ["--similarity=chamfer"],
                "PIE-Net": [
                    "--method=pvse",
                    "--similarity=smooth_chamfer",
                    "--diversity-weight=0.01",
                ],
                "Transformer": ["--normalize-over=positions"],
                **{f"K = {count}": [f"--num-slots={count}"] for count in (1, 2, 3, 5, 6)},
                **{f"T = {count}": [f"--num-iterations={count}"] for count in (1, 2, 3, 5, 6)},
                **{f"α = {alpha}": [f"--alpha={alpha}"] for alpha in (1, 2, 4, 8, 32, 64)},
            },
        ),
        columns.DIVE,
    ),
    "pcmepp_distance": of_pcmepp(  # table 4: of the new techniques VIB alone
        {
            "W2": ["--method=wasserstein_2"],
            "match probability (PCME)": ["--method=pcme"],
            "CSD": ["--pseudo-positive-weight=0", "--mixed-share=0", NO_SWA],
        }
    ),
    "pcmepp_architecture": of_pcmepp(  # table 5; blocks are those of CLIP's backbones
        {
            "1 block for σ, mean pooling": ["--pooling=mean"],
            "2 blocks for σ, GPO": ["--variance-blocks=2"],
            "1 block for σ, GPO": [],
        },
        "--backbone=vit_b_32",
        NO_SWA,
    ),
    "pcmepp_loss": of_pcmepp(  # table 3, which has six of these nine
        {name: [*flags, NO_SWA] for name, flags in with_and_without(PARTS).items()}
        | {f"{', '.join(PARTS)}, SWA": []}
    ),
    "pcmepp_alpha": of_pcmepp(  # table C.2
        {f"α = {alpha}": [f"--pseudo-positive-weight={alpha}"] for alpha in (0.1, 0.5, 2, 5, 10)},
        NO_SWA,
    ),
    "pcmepp_mixing": of_pcmepp(  # table C.3
        {
            "Mixup alone": ["--mixup=1"],
            "CutMix alone": ["--mixup=0"],
            "λ of Beta(1, 1), 50 %, whole batches": [*ONE, "--mixed-share=0.5", WHOLE],
            "λ of Beta(1, 1), whole batches": [*ONE, WHOLE],
            "λ of Beta(2, 2), whole batches": [WHOLE],
            "λ of Beta(1, 1), 50 %": [*ONE, "--mixed-share=0.5"],
            "λ of Beta(2, 2)": [],
        },
        NO_SWA,
    ),
}
