"""Install every declared minimum version and run a representative part of the tests on them.

The minima are the lower bounds in pyproject.toml, of the required dependencies, those of fiedler-papers, and the extras
that the tests use, so that a bound which cannot be installed, or with which the library does not work, is found.
``--print`` writes them as a constraints file for pip instead. The whole suite is run by ``python
.ci/lowest_versions.py tests``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv-lowest"
EXTRAS = ("test", "zarr")
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[(?P<extras>[^]]*)\])?>=(?P<version>[0-9.]+)")
OWN_EXTRAS = re.compile(r"fiedler\[(?P<extras>[^]]*)\]")

# Every command, each kind of file, every optional library, and the contract of the estimators.
TESTS = (
    "tests/test_contract.py",
    "tests/test_package.py",
    "tests/test_persistence.py",
    "tests/cli",
    "tests/core",
    "tests/faults/test_wrong_arguments.py",
    "tests/graph",
    "tests/integrations/test_anndata.py",
    "tests/io",
    "tests/plots",
    "tests/report/test_page.py",
    "tests/table",
    "tests/text",
    "papers/tests/data_sets",
)


def minima(project: dict[str, object]) -> dict[str, str]:
    """Return the declared minimum of every required dependency and of the extras in ``EXTRAS``, by name."""
    required: list[str] = project["dependencies"]  # type: ignore[assignment]
    extras: dict[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    listed = [*required, *(line for name in EXTRAS for line in _lines(extras, name))]
    matches = [REQUIREMENT.fullmatch(line) for line in listed]
    if unbounded := [line for line, match in zip(listed, matches) if match is None]:
        sys.exit(f"{unbounded} have no lower bound of the form name>=version")
    return {match["name"]: match["version"] for match in matches if match is not None}


def _lines(extras: dict[str, list[str]], name: str) -> Iterator[str]:
    """Yield the requirements of an extra and of the extras that it includes."""
    for line in extras[name]:
        if (own := OWN_EXTRAS.fullmatch(line)) is None:
            yield line
        else:
            for included in own["extras"].split(","):
                yield from _lines(extras, included)


def constraints() -> str:
    """Return the minima as the text of a constraints file."""
    files = (ROOT / "pyproject.toml", ROOT / "papers" / "pyproject.toml")
    project, papers = (tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files)
    project["dependencies"] += [line for line in papers["dependencies"] if not OWN_EXTRAS.match(line)]
    return "".join(f"{name}=={version}\n" for name, version in sorted(minima(project).items()))


def main(arguments: list[str]) -> None:
    """Create the environment, show the command line's help, and run tests."""
    if arguments == ["--print"]:
        print(constraints(), end="")
        return
    python = VENV / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    listed = VENV / "constraints.txt"
    listed.write_text(constraints(), encoding="utf-8")
    sources = ["--editable", f"{ROOT}[{','.join(EXTRAS)}]", "--editable", ROOT / "papers"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", listed, *sources], check=True)
    subprocess.run([python.with_name("fiedler"), "--help"], check=True, stdout=subprocess.DEVNULL)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "SCIPY_ARRAY_API": "1"}
    tests = [python, "-m", "pytest", "-n", os.environ.get("JOBS", "auto"), *(arguments or TESTS)]
    sys.exit(subprocess.run(tests, cwd=ROOT, env=environment).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
