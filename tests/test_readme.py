"""The Python blocks of the README run, from the first to the last."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.filterwarnings("ignore")
def test_blocks_of_the_readme_run_in_order(tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {}

    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)

    assert len(blocks) >= 5
    assert names["fiedler"].metrics.clustering_accuracy(names["digits"].y[:1500], names["labels"]) > 0.85
    assert "rows" in capsys.readouterr().out
    assert (tmp_path / "digits-model.safetensors").exists()
