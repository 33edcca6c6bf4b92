"""Records of iterations."""

import numpy as np
import pytest

from fiedler._records import FitHistory
from fiedler.errors import InputError


def test_histories_are_compared_by_their_values():
    history = FitHistory([2.0, 1.0], maximize=False, terms={"loss": [1.0, np.nan]})

    assert history == FitHistory([2.0, 1.0], maximize=False, terms={"loss": [1.0, np.nan]})
    assert history != FitHistory([2.0, 1.0], maximize=True, terms={"loss": [1.0, np.nan]})
    assert history != [2.0, 1.0]
    with pytest.raises(InputError, match="loss has 1 values, but the objective has 2"):
        FitHistory([2.0, 1.0], maximize=False, terms={"loss": [1.0]})
