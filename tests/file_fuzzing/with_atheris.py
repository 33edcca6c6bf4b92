"""The same mutations under libFuzzer, where atheris is installed.

Run ``python -m file_fuzzing.with_atheris corpus/ -runs=100000``. libFuzzer keeps the mutations that reach new branches
of fiedler in the folder ``corpus``; the valid files are put there first. It stops at the first finding and writes it to
``crash-<digest>``.
"""

import sys
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["fiedler.persistence", "fiedler._archive", "fiedler._model_schema"]):
    from .mutate import mutate
    from .seeds import make_seeds
    from .target import examine

MODELS = [seed for seed in make_seeds() if seed.kind == "model"]


def try_one(data: bytes) -> None:
    """Read a model file; rows are those of the first model, on which the others give a result or an error of ours."""
    examine("model", data, MODELS[0].rows)


def mutator(data: bytes, max_size: int, random_state: int) -> bytes:
    """Mutate parts of a file, or bytes as libFuzzer does."""
    rng = Random(random_state)
    if rng.random() < 0.1:
        return atheris.Mutate(data, max_size)
    return mutate("model", data, rng.choice(MODELS).content, rng)[:max_size]


def main() -> None:
    """Write the valid files to the corpus and start libFuzzer."""
    corpus = next((Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if corpus is not None:
        corpus.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(MODELS):
            (corpus / f"valid-{i}").write_bytes(seed.content)
    atheris.Setup([*sys.argv, "-max_len=100000", "-timeout=30"], try_one, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
