"""Every sentence that the command line puts into other words is one that the library says."""

import re
from pathlib import Path

import pytest

pytest.importorskip("typer")

import fiedler
from fiedler.cli.wording import SAID

OF_OTHERS = "Number of distinct clusters"  # scikit-learn's
SOURCE = Path(fiedler.__file__).parent


def library():
    """All source but the command line's, with strings over several lines joined."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.parent.name != "cli"]
    return re.sub(r"\"\s*\n\s*f?\"", "", "\n".join(texts))


def longest_words(pattern):
    """The longest run of plain words in a regular expression, groups of choices and escapes aside."""
    plain = re.sub(r"\([a-z|]+\)\w*|\\\w|\(s\\\)", "#", pattern)
    return max(re.findall(r"[a-z ,-]+", plain), key=len).strip()


@pytest.mark.parametrize("pattern", [said for said in SAID if OF_OTHERS not in said])
def test_what_is_put_into_other_words_is_still_said(pattern):
    words = longest_words(pattern)
    assert len(words) >= 8
    assert words in library()
