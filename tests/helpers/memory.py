"""Memory of a process on Linux, as `/proc` has it.

`ru_maxrss` would not do: a child begins with the peak of the process that made it.
"""

from pathlib import Path

from processes import python

STATUS = Path("/proc/self/status")
_LAST_WORDS = """
import sys
from pathlib import Path
status = Path("/proc/self/status").read_text()
print("PEAK_GIB", int(status.split("VmHWM:")[1].split()[0]) / 2**20)
"""


def held(field="VmRSS"):
    """Bytes that this process holds, or with `"VmHWM"` how many it held at most."""
    return 1024 * int(STATUS.read_text().split(f"{field}:")[1].split()[0])


def forget_peak():
    """The peak of this process begins here."""
    Path("/proc/self/clear_refs").write_text("5")


def run(code, *arguments):
    """`(what Python code printed, its peak in GiB)`, of a process of its own."""
    printed, _, peak = python("-c", code + _LAST_WORDS, *arguments).stdout.rpartition("PEAK_GIB")
    return printed, float(peak)
