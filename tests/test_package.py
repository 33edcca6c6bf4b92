"""The package as a whole: what importing it costs, what it exposes, what it leaves out."""

import subprocess
import sys

import pytest

import fiedler
from fiedler._files import atomic_write
from fiedler._validation import check_positive
from fiedler.errors import MissingDependencyError


def test_importing_loads_no_heavy_library():
    heavy = ["sklearn", "torch", "cupy", "matplotlib", "faiss", "pandas"]
    code = f"import sys, fiedler; print([name for name in {heavy} if name in sys.modules])"

    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_fitting_loads_no_optional_library():
    optional = ["torch", "cupy", "matplotlib", "faiss"]
    code = (
        "import sys, fiedler; fiedler.SpectralClustering(2).fit([[i, i % 3] for i in range(20)]); "
        f"print([name for name in {optional} if name in sys.modules])"
    )

    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_subpackages_are_attributes_and_unknown_names_raise():
    assert fiedler.metrics.purity([0], [0]) == 1
    with pytest.raises(AttributeError, match="module 'fiedler' has no attribute 'nothing'"):
        _ = fiedler.nothing


def test_the_baselines_name_their_distribution_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "fiedler_papers", None)
    monkeypatch.delitem(sys.modules, "fiedler.baselines", raising=False)
    monkeypatch.delitem(vars(fiedler), "baselines", raising=False)  # hasattr would import it

    assert "baselines" not in dir(fiedler)
    with pytest.raises(MissingDependencyError, match=r"fiedler\.baselines needs the distribution fiedler-papers"):
        _ = fiedler.baselines


def test_a_failed_write_keeps_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError), atomic_write(target) as draft:
        draft.write_text("half, then \ud800")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("name", [".npz", "n" * 249 + ".npz", "plain"])
def test_files_of_any_name_are_written(name, tmp_path):
    with atomic_write(tmp_path / name) as draft:
        assert draft.suffix == (".npz" if "." in name else "")
        draft.write_text("new")

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "new")]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_the_file_behind_a_link_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "folder" / "a.txt")

    with atomic_write(tmp_path / "link.txt") as draft:
        draft.write_text("new")

    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "folder" / "a.txt").read_text() == "new"


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_check_positive_rejects_other_values(value):
    with pytest.raises(ValueError, match="width must be a positive number; got"):
        check_positive(value, "width")
