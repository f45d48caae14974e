"""Makes the bank of caption stems that the package holds.

python -m tools.caption_bank captions_val2017.json halo_search/confidence/caption_bank.npz
"""

import json
from pathlib import Path

import numpy as np

from halo_search.confidence.words import CaptionBank
from zoo.cli import OneLineParser, run


def main(argv=None):
    parser = OneLineParser(prog="python -m tools.caption_bank", description=__doc__.split("\n")[0])
    parser.add_argument("captions", type=Path, help="COCO's captions_val2017.json")
    parser.add_argument("out", type=Path, help="file to write")
    options = parser.parse_args(argv)
    rows = json.loads(options.captions.read_text(encoding="utf-8"))["annotations"]
    photo_of = np.unique([row["image_id"] for row in rows], return_inverse=True)[1]
    bank = CaptionBank.of([row["caption"] for row in rows], photo_of)
    bank.save(options.out)
    size = options.out.stat().st_size
    print(f"{options.out}: {len(bank.stems):,} stems of {bank.size:,} photos, {size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    run(main)
