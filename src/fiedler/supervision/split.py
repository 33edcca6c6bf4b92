"""Cross-validation with pairwise constraints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import GroupKFold

from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import check_int, check_seed
from ..errors import InputError, InputTypeError
from ..graph.constraints import PairwiseConstraints, check_constraints


class ConstrainedKFold:
    """Cross-validation folds that split no must-linked group, so that no pair reveals rows on which a fold is tested.

    Parameters
    ----------
    constraints : PairwiseConstraints
        The pairs.
    n_splits : int, default=5
        The number of folds.
    random_state : int, RandomState or None, default=None
        Random seed or generator, with which the groups are shuffled.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.supervision import ConstrainedKFold, PairwiseConstraints
    >>> pairs = PairwiseConstraints([(0, 9), (1, 8)], [(0, 1)], n_samples=10)
    >>> for train, test, known, hidden in ConstrainedKFold(pairs, 2, random_state=0).split_pairs(np.zeros((10, 1))):
    ...     print(len(train), len(test), known.n_pairs + hidden.n_pairs)
    5 5 2
    5 5 2
    """

    def __init__(self, constraints: PairwiseConstraints, n_splits: int = 5, random_state: RandomState = None) -> None:
        self.constraints = constraints
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: MatrixLike, y: LabelsLike | None = None, groups: object = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows for training and for testing of each fold."""
        pairs = check_constraints(self.constraints, X)
        if pairs is None:
            raise InputTypeError(
                "ConstrainedKFold needs PairwiseConstraints",
                "without constraints use scikit-learn's KFold",
                code="invalid_constraints",
                parameter="constraints",
            )
        n_splits, n_groups = check_int(self.n_splits, "n_splits", minimum=2), int(pairs.groups.max()) + 1
        if n_splits > n_groups:
            raise InputError(
                f"n_splits={n_splits} is more than the number of must-linked groups ({n_groups})",
                f"choose at most {n_groups}" if n_groups > 1 else "use fewer must-links",
                code="too_few_groups",
                parameter="n_splits",
                value=n_splits,
                n_groups=n_groups,
            )
        folds = GroupKFold(n_splits, shuffle=True, random_state=check_seed(self.random_state))
        return folds.split(np.zeros(pairs.n_samples), groups=pairs.groups)

    def split_pairs(
        self, X: MatrixLike
    ) -> Iterator[tuple[np.ndarray, np.ndarray, PairwiseConstraints, PairwiseConstraints]]:
        """Yield the rows for training and testing of each fold, and the pairs among either, numbered within them."""
        for train, test in self.split(X):
            yield train, test, self.constraints.subset(train), self.constraints.subset(test)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits
