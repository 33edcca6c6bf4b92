"""What the library says of its options, in the words of the command line: one table for errors and notes alike."""

from __future__ import annotations

import re

EXPECTED = (ValueError, TypeError, OSError, RuntimeError, ImportError)

FEWER = "ask for fewer clusters with -k, or take another --method"

# What the library says, a regular expression, and what is said here instead of it.
SAID = {
    # what was read
    r"give it a role as labels, id or text, or leave it out with drop": (
        "give it a role with --labels, --id or --text, or leave it out with --drop"
    ),
    r", or leave it out with drop$": ", or leave it out with --drop",
    r"labels, id, text and drop are for tables": "--labels, --id, --text and --drop are for tables",
    r"bring all to one size, such as 32": "bring all to one size, such as --size 32",
    r"is no folder of images, which size is for": "is no folder of images, which --size is for; leave it out",
    r": give one as column=": "; name one with --text",
    r"no field ('.*?')$": r"no field \1; name another with --text",
    r"give the right encoding=": "save the files as UTF-8",
    r"no term is left of (\d+) document\(s\): .*": (
        r"no word is left of \1 document(s) without numbers and the most common words; give longer texts"
    ),
    # rows
    r"all rows of X are equal": "all rows are equal",
    r"X has entries of size (\S+), whose squares overflow \w+; scale X down": (
        r"the rows hold numbers of size \1, whose squares overflow; give them in a larger unit"
    ),
    r"no entry of X is larger than (\S+) and their squares vanish in \w+; scale X up": (
        r"no number of the rows is larger than \1, and their squares vanish; give them in a smaller unit"
    ),
    r"n_neighbors=(\d+) needs more rows than there are \(n_samples=(\d+)\); .*": (
        r"this method joins every row to \1 others, and there are \2 rows; take --method auto or kmeans"
    ),
    r"with n_features=1 rows at length one have no directions to tell apart; .*": (
        "lpi tells rows apart by their direction, and those of one column have none; take another --method"
    ),
    r"pca=\S+ must be a share of the variance .*": (
        "this method asks for two columns or more of sparse rows; take --method auto"
    ),
    r"so it cannot set the bandwidth; .*": "so the graph has no scale; remove the duplicates",
    # clusters
    r"a component has lost all its rows; .*": f"a cluster has lost all its rows; {FEWER}",
    r"the rows allow (\d+) independent directions \(.*?\), but n_components=(\d+); .*": (
        rf"the rows hold \1 independent directions where \2 are needed; {FEWER}"
    ),
    r"ask for fewer, weaken the smoothing, or try another init": FEWER,
    r"ask for fewer clusters, or try more starts or another graph": FEWER,
    r"Number of distinct clusters \((\d+)\) found smaller than n_clusters \((\d+)\)\. .*": (
        r"k-means found \1 different groups where it sought \2: some rows repeat others"
    ),
    r"If that is not meant, use more neighbours, or join the components .*": (
        "If that is not meant, take --method auto, which joins them"
    ),
    r"after max_iter=(\d+); labels are the best seen, and .*": r"after \1 rounds; the labels are the best seen",
    r"within max_iter=(\d+) iterations; raise .*": r"within \1 rounds; the labels are those of the last",
    r"; raise max_iter or tol.*": "; the result is less exact than usual",
    r"; use a larger radius or bandwidth, or weight='binary'": "",
    # pairs
    r"cannot read pairs from ('.*?'): \[Errno \d+\] ([^:]+): .*": r"--pairs \1 cannot be read: \2",
    r"cannot read pairs from ('.*?'): 'utf-8' codec .*": r"--pairs \1 is not text in UTF-8; save it as UTF-8",
    r"(must|cannot)_link holds the pair (\(.*?\)), but (.*)": (
        r"--pairs holds the \1-link \2, but \3; mend it, or take it out"
    ),
    r"(must|cannot)_link holds (\d+ pair\(s\) of a row with itself)": r"--pairs holds \2",
    r"use fewer, for example from_labels\(.*": "give fewer",
}


def in_words(text: str) -> str:
    """A sentence of the library for a reader who has the command line and no Python.

    Examples
    --------
    >>> in_words("'t.jsonl' has no column 'text'; its columns are 'a', 'b': give one as column=")
    "'t.jsonl' has no column 'text'; its columns are 'a', 'b'; name one with --text"
    """
    text = " ".join(text.split())
    for said, meant in SAID.items():
        text = re.sub(said, meant, text)
    return text


def sentence(error: BaseException) -> str:
    """What an error says, in one line; of the system's errors, the reason and the file.

    Examples
    --------
    >>> sentence(PermissionError(13, "Permission denied", "rows.csv"))
    "Permission denied: 'rows.csv'"
    >>> sentence(MemoryError())
    'there is not enough memory for this'
    """
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}" if error.filename else error.strerror
    said = in_words(str(error))
    if said and isinstance(error, EXPECTED):
        return said
    return f"{type(error).__name__} that was not foreseen ({said}); --debug shows where"
