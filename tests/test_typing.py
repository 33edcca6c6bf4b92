"""A user's file passes the type checkers in their strict modes."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fiedler import _registry

USER_CODE = Path(__file__).parent / "typing" / "user_code.py"


def test_the_file_uses_every_public_name():
    text = USER_CODE.read_text(encoding="utf-8")
    assert [name for name in _registry.public_names() if f"{name}(" not in text and f"{name}." not in text] == []


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental"],
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable],
    ],
    ids=["mypy", "pyright"],
)
def test_a_type_checker_accepts_it(command, tmp_path):
    if find_spec(command[2]) is None:
        pytest.skip(f"{command[2]} is not installed")
    shutil.copy(USER_CODE, tmp_path)  # away from the repository's own settings
    run = subprocess.run([*command, USER_CODE.name], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
