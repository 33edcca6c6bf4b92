"""Small inputs of every kind for the command line."""

import numpy as np
import pytest

from command_line import run_fiedler  # noqa: F401
from fiedler.datasets import blobs

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")


@pytest.fixture(scope="module")
def run_module():
    """Run ``fiedler`` in a fixture that several tests share."""
    from fiedler.cli.app import app

    def run(*arguments):
        return app([str(argument) for argument in arguments], standalone_mode=False)

    return run


@pytest.fixture
def clouds():
    """Three well separated groups of twenty rows."""
    return blobs(60, n_features=3, n_clusters=3, random_state=0)


@pytest.fixture
def table(tmp_path, clouds):
    """The groups as a CSV file with row names and classes."""
    X, y = clouds
    rows = [f"r{i},{a:.6f},{b:.6f},{c:.6f},{'abc'[k]}" for i, ((a, b, c), k) in enumerate(zip(X, y))]
    path = tmp_path / "clouds.csv"
    path.write_text("name,x,y,z,class\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def texts(tmp_path):
    """A folder of texts on two topics."""
    folder = tmp_path / "texts"
    folder.mkdir()
    rng = np.random.RandomState(0)
    topics = (["star", "planet", "orbit", "moon", "comet"], ["bread", "butter", "oven", "flour", "yeast"])
    for i in range(30):
        words = rng.choice(topics[i % 2], size=8)
        (folder / f"{i:02d}.txt").write_text(" ".join(words))
    return folder


@pytest.fixture
def pictures(tmp_path):
    """A folder of noisy images of vertical and horizontal stripes of different brightness."""
    pillow = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.RandomState(0)
    for i in range(30):
        stripes = np.tile([0, 60 + 40 * (i % 4)], (6, 3))
        pixels = rng.randint(0, 30, size=(6, 6)) + (stripes if i % 2 else stripes.T)
        pillow.fromarray(pixels.astype(np.uint8)).save(folder / f"{i:02d}.png")
    return folder
