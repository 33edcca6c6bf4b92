"""A user's file passes the type checkers in their strict modes."""

import re
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
    assert [
        name for name in _registry.public_names() if len(re.findall(rf"\b{name}\b", text)) < 1 + (name[0].isupper())
    ] == []


MISTAKES = USER_CODE.with_name("mistakes.py")
CHECKERS = {
    "mypy": [sys.executable, "-m", "mypy", "--strict", "--no-incremental"],
    "pyright": [sys.executable, "-m", "pyright", "--pythonpath", sys.executable],
}


@pytest.fixture(params=list(CHECKERS))
def check(request, tmp_path):
    """Run a type checker on a copy of a file, away from the repository's own settings."""
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")

    def run(*paths):
        for path in paths:
            shutil.copy(path, tmp_path)
        command = [*CHECKERS[request.param], *(path.name for path in paths)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
def test_type_checkers_accept_a_users_file_and_find_mistakes(check):
    run = check(USER_CODE, MISTAKES)

    reported = {int(line) for line in re.findall(r"mistakes\.py:(\d+)", run.stdout)}
    marked = [number for number, line in enumerate(MISTAKES.read_text("utf-8").splitlines(), 1) if "# <-" in line]
    assert USER_CODE.name not in run.stdout, run.stdout
    assert sorted(reported) == marked, run.stdout + run.stderr
