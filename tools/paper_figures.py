"""What the papers report, on their data and backbones: context for our figures, no comparison."""

from typing import NamedTuple


class Reported(NamedTuple):
    """One line of a paper's table, in percent, image → text and text → image; None: not given."""

    system: str
    data: str
    backbone: str
    recall: tuple | None = None
    r_precision: tuple | None = None
    rsum: float | None = None
    source: str = ""


PCME = "Chun et al., CVPR 2021"
PISHDAD = "Pishdad et al., 2022"
DAA = "Li et al., NeurIPS 2022"
PCMEPP = "Chun, ICLR 2024"
DIVE = "Kim et al., CVPR 2023"
CUB, COCO, FLICKR = "CUB, 50 unseen classes", "COCO 5K", "Flickr30K"
GRU = "ResNet-152, GRU"

REPORTED = (
    Reported("PCME", CUB, "ResNet-50, bi-GRU", (46.9, 35.2), (26.3, 26.8), source=PCME),
    Reported("PCME, μ only", CUB, "ResNet-50, bi-GRU", None, (24.7, 25.6), source=PCME),
    Reported("PCME-BERT", CUB, "ResNet-50, BERT", None, (27.2, 27.8), source=DAA),
    Reported("PCME-BERT + DAA", CUB, "ResNet-50, BERT", None, (28.2, 28.5), source=DAA),
    Reported("PCME", COCO, "ResNet-152, bi-GRU", (44.2, 31.9), source=PCME),
    Reported("VSE++", COCO, GRU, (35.3, 23.2), source=PISHDAD),
    Reported("Gaussian VSE++", COCO, GRU, (34.7, 24.5), source=PISHDAD),
    Reported("Gaussian VSE++, ft", COCO, GRU, (41.4, 30.0), source=PISHDAD),
    Reported("Gaussian VSRN", COCO, "36 regions, GRU", (51.1, 38.8), source=PISHDAD),
    Reported("Gaussian VSE++", FLICKR, GRU, (48.8, 33.3), source=PISHDAD),
    Reported("Gaussian VSE++, ft", FLICKR, GRU, (56.9, 41.1), source=PISHDAD),
    Reported("Gaussian VSRN", FLICKR, "36 regions, GRU", (69.2, 52.3), source=PISHDAD),
    Reported("SGRAF", COCO, "36 regions, bi-GRU", (59.0, 42.6), source=DAA),
    Reported("SGRAF + DAA", COCO, "36 regions, bi-GRU", (60.0, 43.5), source=DAA),
    Reported("PCME-BERT", COCO, "ResNet-152, BERT", (45.6, 33.2), source=DAA),
    Reported("PCME-BERT + DAA", COCO, "ResNet-152, BERT", (48.2, 35.1), source=DAA),
    Reported("SGRAF", FLICKR, "36 regions, bi-GRU", (77.1, 58.5), source=DAA),
    Reported("SGRAF + DAA", FLICKR, "36 regions, bi-GRU", (78.0, 59.9), source=DAA),
    Reported("DivE", COCO, "ResNet-152, bi-GRU", rsum=377.7, source=DIVE),
    Reported("DivE", COCO, "36 regions, bi-GRU", rsum=430.7, source=DIVE),
    Reported("DivE", COCO, "ResNeXt-101, BERT", rsum=474.9, source=DIVE),
    Reported("DivE", FLICKR, "ResNet-152, bi-GRU", rsum=442.6, source=DIVE),
    Reported("DivE", FLICKR, "36 regions, bi-GRU", rsum=500.8, source=DIVE),
    Reported("DivE", FLICKR, "ResNeXt-101, BERT", rsum=551.9, source=DIVE),
)
# PCME++ gives the mean of both directions alone.
MEAN_RECALL = (
    ("PCME++", "CLIP ViT-B/32", 55.3, PCMEPP),
    ("PCME++", "CLIP ViT-B/16", 61.3, PCMEPP),
    ("PCME++", "CLIP ViT-L/14", 64.3, PCMEPP),
)


def markdown():
    """The papers' figures as a Markdown table."""
    lines = [
        "| system | data | backbone | R@1 i2t / t2i | R-P i2t / t2i | RSUM | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in REPORTED:
        cells = (
            row.system,
            row.data,
            row.backbone,
            _both(row.recall),
            _both(row.r_precision),
            "" if row.rsum is None else f"{row.rsum:.1f}",
            row.source,
        )
        lines.append(f"| {' | '.join(cells)} |")
    for system, backbone, recall, source in MEAN_RECALL:
        lines.append(
            f"| {system} | {COCO} | {backbone} | mean of both {recall:.1f} | | | {source} |"
        )
    return "\n".join(lines) + "\n"


def _both(pair):
    return "" if pair is None else " / ".join(f"{value:.1f}" for value in pair)
