"""The command line in this process, and small inputs of every kind."""

import sys
from typing import NamedTuple

import numpy as np
import pytest

from fiedler.datasets import blobs

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")


class Spoken(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def fiedler_says(monkeypatch, capsys):
    """Runs ``fiedler`` with the given words."""
    from fiedler.cli import main

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["fiedler", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return Spoken(code, said.out, said.err)

    return run


@pytest.fixture
def clouds():
    """Three groups of twenty rows, well apart."""
    return blobs(60, n_features=3, n_clusters=3, random_state=0)


@pytest.fixture
def table(tmp_path, clouds):
    """The groups as a CSV file with ids and classes."""
    X, y = clouds
    rows = [f"r{i},{a:.6f},{b:.6f},{c:.6f},{'abc'[k]}" for i, ((a, b, c), k) in enumerate(zip(X, y))]
    path = tmp_path / "clouds.csv"
    path.write_text("name,x,y,z,class\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def texts(tmp_path):
    """A folder of texts on two subjects."""
    folder = tmp_path / "texts"
    folder.mkdir()
    rng = np.random.RandomState(0)
    subjects = (["star", "planet", "orbit", "moon", "comet"], ["bread", "butter", "oven", "flour", "yeast"])
    for place in range(30):
        words = rng.choice(subjects[place % 2], size=8)
        (folder / f"{place:02d}.txt").write_text(" ".join(words))
    return folder


@pytest.fixture
def pictures(tmp_path):
    """A folder of images of stripes, up and across, some darker, with noise."""
    pillow = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.RandomState(0)
    for place in range(30):
        stripes = np.tile([0, 60 + 40 * (place % 4)], (6, 3))
        pixels = rng.randint(0, 30, size=(6, 6)) + (stripes if place % 2 else stripes.T)
        pillow.fromarray(pixels.astype(np.uint8)).save(folder / f"{place:02d}.png")
    return folder
