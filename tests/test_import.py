"""What a fresh process finds after `import zoo` alone."""

import subprocess
import sys

import zoo
from zoo.data.captions import WordTokenizer


def test_import_alone_is_enough_to_load_a_model_with_its_tokenizer(tmp_path):
    tokenizer = WordTokenizer(["bird"], max_words=4)
    model = zoo.models.pcme("tiny", tokenizer, dim=4, word_dim=4, image_size=16)
    zoo.save_preset(model, tmp_path / "mine")
    code = "import sys, zoo; print(zoo.from_preset(sys.argv[1]).tokenize(['a bird']).tolist())"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "mine")],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout.strip() == "[[1, 2, 0, 0]]", done.stderr[-2000:]
