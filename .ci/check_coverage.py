"""Print the branch coverage of every package, and fail if one is below its target: ``check_coverage.py coverage.json``.

A percentage is that of statements and branches together, as coverage.py counts them.
"""

import json
import sys
from pathlib import Path

# Packages and files of which every statement and branch is covered.
COMPLETE = {"_files.py", "errors.py", "io", "persistence.py"}
ELSEWHERE = 95.0  # %


def package_of(file: str) -> str:
    """Return the package of a file of the library, or the file itself if it is in none."""
    return Path(file).parts[Path(file).parts.index("fiedler") + 1]


def count(files: dict[str, dict]) -> dict[str, tuple[int, int]]:
    """Return the covered and all statements and branches of each package."""
    packages: dict[str, tuple[int, int]] = {}
    for file, record in files.items():
        if "fiedler" not in Path(file).parts:
            continue
        total, (covered, all_) = record["summary"], packages.get(package_of(file), (0, 0))
        covered += total["covered_lines"] + total["covered_branches"]
        packages[package_of(file)] = (covered, all_ + total["num_statements"] + total["num_branches"])
    return packages


def main(path: str) -> int:
    """Print a table, and return 1 if a package is below its target."""
    measured = count(json.loads(Path(path).read_text())["files"])
    failed = False
    for name in sorted(COMPLETE - set(measured)):
        failed = True
        print(f"{name:20} was not measured")
    for name, (covered, total) in sorted(measured.items()):
        percentage = 100 * covered / total if total else 100.0
        target = 100.0 if name in COMPLETE else ELSEWHERE
        failed |= percentage < target
        print(f"{name:20} {percentage:6.2f} %  of {total:5}{'' if percentage >= target else f'  below {target:g} %'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
