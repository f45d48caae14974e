"""Studies: tables, sweeps, figures and trials over the recipes' runs. Not in the wheel.

Run from a checkout, as `python -m studies.ablations`. The recipes are scripts beside each other,
so that their folder has to be on the path.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "recipes"))
