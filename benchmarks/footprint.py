"""Count what a default fit runs, and the size of the source: functions and modules of fiedler, files and lines.

    python benchmarks/footprint.py

A function is counted once, however often it runs; lambdas, comprehensions and the bodies of classes and modules are not
functions of their own.
"""

from __future__ import annotations

import io
import sys
import tokenize
from pathlib import Path

from sklearn.datasets import load_digits

import fiedler

SOURCE = Path(fiedler.__file__).parent
NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


def functions_of_a_fit(X) -> set[tuple[str, str]]:
    """Return the functions of fiedler that ``fiedler.cluster(X)`` runs, as pairs of module and name."""
    run = set()

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<"):
            run.add((str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname))

    fiedler.cluster(X[:100], 2, random_state=0)  # imports
    sys.setprofile(profile)
    try:
        fiedler.cluster(X, random_state=0)
    finally:
        sys.setprofile(None)
    return run


def n_code_lines(text: str) -> int:
    """Return the number of lines with code, without comments, docstrings and blank lines."""
    lines, previous = set(), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL)
        if token.type not in NOT_CODE and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            previous = token.type
    return len(lines)


def main() -> None:
    run = functions_of_a_fit(load_digits().data)
    modules = {module for module, _ in run}
    print(f"fiedler.cluster(X) runs {len(run)} functions in {len(modules)} modules")
    if "--list" in sys.argv:
        for module in sorted(modules):
            names = sorted(name for other, name in run if other == module)
            print(f"  {module}: {len(names)}: {', '.join(names)}")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    n_lines, n_code = (sum(map(count, texts.values())) for count in (lambda text: text.count("\n"), n_code_lines))
    print(f"src/fiedler: {len(texts)} files, {n_lines:,} lines, {n_code:,} of code")


if __name__ == "__main__":
    main()
