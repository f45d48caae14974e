"""A checkpoint of 4 GB becomes a model without a second copy of it in memory."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import memory
import released

LAYERS, WIDTH, GIB = 26, 1280, 2**30
WIDTHS = {32: WIDTH, 96: 3 * WIDTH, 128: 4 * WIDTH}  # of prolip_tiny, and here
LOAD = """
import sys, threading, time
from pathlib import Path
import zoo
status, peak, done = Path("/proc/self/status"), [0], threading.Event()

def watch():
    while not done.wait(0.005):
        held = int(status.read_text().split("RssAnon:")[1].split()[0]) * 1024
        peak.append(max(peak.pop(), held))

threading.Thread(target=watch, daemon=True).start()
time.sleep(0.1)
before = peak[0]
model = zoo.from_checkpoint(sys.argv[1])
done.set()
print(peak[0] - before, model.count_params())
"""


def large(folder):
    """A ProLIP of so many layers, whose weights are zeros that take no room on the disk."""
    about, shapes, _ = released.described("prolip_tiny")
    config = about["config"] | {"embed_dim": WIDTH}
    for side, heads in (("vision_cfg", {"head_width": 80}), ("text_cfg", {"heads": 16})):
        config[side] = config[side] | {"width": WIDTH, "layers": LAYERS} | heads
    header, end = {}, 0
    for name, shape in shapes.items():
        wide = [WIDTHS.get(size, size) for size in shape]
        names = [name]
        if ".resblocks." in name:
            if ".resblocks.1." in name:
                continue
            names = [name.replace(".0.", f".{layer}.", 1) for layer in range(LAYERS)]
        for one in names:
            size = 4 * int(np.prod(wide))
            header[one] = {"dtype": "F32", "shape": wide, "data_offsets": [end, end + size]}
            end += size
    told = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(told).to_bytes(8, "little") + told)
        file.truncate(file.tell() + end)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return end


def free():
    """Bytes that processes may still take."""
    return 1024 * int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0])


@pytest.mark.very_slow  # a billion weights
@pytest.mark.skipif(os.name != "posix" or not Path("/proc/meminfo").exists(), reason="reads /proc")
def test_four_gigabytes_are_held_once(tmp_path):
    if free() < 12 * GIB:
        pytest.skip(f"12 GiB of free memory are needed; there are {free() / GIB:.1f}")
    size = large(tmp_path)
    assert size > 4e9
    printed, _ = memory.run(LOAD, str(tmp_path))
    peak, parameters = map(int, printed.split())
    assert 4 * parameters == pytest.approx(size, rel=1e-4)
    assert peak < 1.15 * size, f"{peak / size:.2f} times the file"
