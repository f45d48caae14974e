"""Photos that each preset encodes per CPU-second: docs/results/tables/preset_speed.csv.

    python -m tools.preset_speed

Decoding, resizing and the network of 128 of the packaged photos by a `Tower`, after a first batch
that compiles it. `make figures` shows the result beside the size.
"""

import csv
import io
import time

from halo_search import open_tower
from halo_search.files.atomic import write_text
from tools.figures import SPEED
from zoo.cli import run
from zoo.data import packaged_photos
from zoo.presets import list_presets

PHOTOS = 128


def main():
    """Measures all presets and writes the table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("preset", "photos per CPU-second"))
    photos = packaged_photos()[:PHOTOS]
    for name in list_presets():
        writer.writerow((name, round(rate(name, photos))))
    write_text(SPEED, text.getvalue())
    print(text.getvalue(), end="")


def rate(name, photos):
    """Photos per second of CPU time of all threads."""
    tower = open_tower(name, "images")
    tower.of_files(photos[:64])
    start = time.process_time()
    tower.of_files(photos)
    return len(photos) / (time.process_time() - start)


if __name__ == "__main__":
    run(main)
