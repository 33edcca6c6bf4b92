"""Build both distributions twice, to dist/ and to a temporary folder, and check that nothing differs.

Each build makes the sdist and then the wheel from it, which shows that the sdist is complete. Time stamps inside the
archives are ``SOURCE_DATE_EPOCH``, by default the time of the last commit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (ROOT, ROOT / "papers")
MAX_LIBRARY_BYTES = 1_000_000  # of the library's wheel


def build(folder: Path) -> dict[str, str]:
    """Build sdists and wheels into ``folder``; return their SHA-256 by name."""
    for project in PROJECTS:
        subprocess.run([sys.executable, "-m", "build", "--outdir", folder, project], check=True, stdout=sys.stderr)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def main() -> None:
    """Build, compare and print name, size and hash of every file."""
    commit_time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time.stdout.strip() or "1580601600")
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    first = build(dist)
    with tempfile.TemporaryDirectory() as folder:
        second = build(Path(folder))
    for name, digest in first.items():
        print(f"{digest}  {name}  {(dist / name).stat().st_size} bytes")
    if first != second:
        sys.exit(f"the two builds differ: {sorted(set(first.items()) ^ set(second.items()))}")
    (wheel,) = dist.glob("fiedler-*.whl")
    if wheel.stat().st_size >= MAX_LIBRARY_BYTES:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes; the limit is {MAX_LIBRARY_BYTES}")


if __name__ == "__main__":
    main()
