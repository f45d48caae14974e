"""DAA's table and curves out of finished runs."""

from studies import daa_table, seed_table
from zoo.files import RunFolder


def finished(path, asp):
    run = RunFolder.open(path, {})
    metrics = {
        f"{side}_{name}": asp / 2
        for side in ("i2t", "t2i")
        for name in ("recall@1", "r_precision", "map@r")
    }
    run.finish({"asp": {"i2t": asp, "t2i": asp + 1}, "retrieval": {"own": metrics}})
    run.history_path.write_text(f"phase,epoch,val_i2t_asp,val_t2i_asp\na,1,{asp},{asp}\n")


def test_the_table_is_of_the_runs(tmp_path, capsys):
    rows = daa_table.rows_of("pcme_bert")
    assert list(rows) == ["PCME-BERT", "PCME-BERT + Smooth-AP", "PCME-BERT + DAA"]
    for place, name in enumerate(rows):
        for seed in (0, 1):
            finished(seed_table.folder(tmp_path, name, seed), 50.0 + 4 * place + seed)
    daa_table.main(["--no-run", f"--out={tmp_path}", "--seeds", "0", "1"])
    text = (tmp_path / "table.md").read_text()
    assert text in capsys.readouterr().out
    assert "| PCME-BERT + DAA | 58.5 ± 0.7 / 59.5 ± 0.7 | 29.2 ± 0.4 / 29.2 ± 0.4 |" in text
    assert (tmp_path / "asp.png").stat().st_size > 5000
