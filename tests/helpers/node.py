"""Runs the scripts of docs/live in node, as a browser would."""

import json
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

SOURCES = pathlib.Path(__file__).parents[2] / "docs" / "live"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="the program node is not here")
JUDGE = """
  const { facts, arrays, texts, mean, log_variance } = value;
  const { photos, ...vectors } = arrays;
  const floats = Object.entries(vectors).map(([name, all]) => [name, new Float32Array(all)]);
  const judged = judge(facts, Object.fromEntries(floats));
  const { asked, named, prior } = questions(facts, new Uint16Array(photos));
  say(texts.map((question, i) => {
    const text = asked(question);
    const embedded = { mean: mean[i], log_variance: log_variance[i] };
    return { ...judged(embedded, named(text), prior(text)), asked: text };
  }));
"""


def in_node(script, value):
    """What a script makes of `value`, which it finds as such; it ends with a call of `say`."""
    names = ("tokenizer", "judge", "questions")
    head = "".join(
        f'import {{ {name} }} from "{(SOURCES / f"{name}.js").as_uri()}";\n' for name in names
    )
    head += (
        'import { readFileSync } from "node:fs";\n'
        'const value = JSON.parse(readFileSync(0, "utf8"));\n'
        "const say = (found) => console.log(JSON.stringify(found));\n"
    )
    done = subprocess.run(
        ["node", "--input-type=module", "-e", head + script],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def judged_in_node(facts, arrays, texts, embedded):
    """What the page's judge says of texts whose embeddings are there.

    Args:
        facts, arrays: of `tools.live_facts.facts_of`.
        texts: as they were typed.
        embedded: of what the model is asked, a dict of arrays.
    """
    value = {
        "facts": facts,
        "arrays": {name: np.asarray(one, float).ravel().tolist() for name, one in arrays.items()},
        "texts": texts,
        **{name: part.tolist() for name, part in embedded.items()},
    }
    return in_node(JUDGE, value)
