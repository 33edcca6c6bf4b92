"""A short version of ``make endurance``: fits repeated, and several at once."""

import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning
from sklearn.cluster import KMeans

from contract import INSTANCES
from faults.endurance import global_state, jobs, resources, run_in_threads
from fiedler import _foreign_warnings
from fiedler._foreign_warnings import ignore_foreign_warnings
from fiedler.errors import FiedlerWarning, NotConvergedWarning, ignore_warnings, warn

pytestmark = [
    pytest.mark.filterwarnings("ignore::fiedler.errors.FiedlerWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_eight_threads_at_once_give_what_one_gives_and_change_no_global_state():
    work = jobs(8)
    expected = [job() for job in work]
    before = global_state()

    found = run_in_threads(work, 8, 2)

    assert global_state() == before
    for model, runs, alone in zip(INSTANCES, found, expected):
        assert all(np.array_equal(run, alone) for run in runs), model


@pytest.mark.slow
@linux
def test_repeated_fits_hold_no_more_memory_threads_or_descriptors():
    work = jobs(8)
    for job in 2 * work:
        job()
    before = resources()
    for job in 2 * work:
        job()
    after = resources()

    assert after.memory_mib < before.memory_mib + 16
    assert after.n_threads <= before.n_threads
    assert after.n_descriptors <= before.n_descriptors


def test_overlapping_threads_leave_the_filters_of_warnings_as_they_were():
    before = list(warnings.filters)

    def nap(seconds):
        with ignore_foreign_warnings():
            time.sleep(seconds)

    with ThreadPoolExecutor(8) as executor:  # the first to enter is the first to leave, which confuses catch_warnings
        list(executor.map(nap, [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08]))

    assert list(warnings.filters) == before


def test_what_scikit_learn_leaves_in_the_filters_is_removed():
    """Two threads that overlap inside its validation of arrays, in the order in which the second keeps the first's."""
    before = list(warnings.filters)
    first, second = (
        (ignore_foreign_warnings(), warnings.catch_warnings()),
        (ignore_foreign_warnings(), warnings.catch_warnings()),
    )
    for ours, theirs in (first, second):
        ours.__enter__()
        theirs.__enter__()
        warnings.simplefilter("error", ComplexWarning)
    for ours, theirs in (first, second):
        theirs.__exit__(None, None, None)
        ours.__exit__(None, None, None)

    assert list(warnings.filters) == before


def test_a_filter_that_the_program_sets_meanwhile_stays():
    with warnings.catch_warnings():
        before = list(warnings.filters)
        with ignore_foreign_warnings():
            warnings.simplefilter("error", ResourceWarning)
            added = warnings.filters[0]

        assert list(warnings.filters) == [added, *(one for one in before if one != added)]


def test_only_warnings_of_other_libraries_are_ignored():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ignore_foreign_warnings():
            KMeans(2, n_init=1, random_state=0).fit(np.ones((4, 1)))
            warn("ours", category=NotConvergedWarning)

    assert [str(warning.message) for warning in caught] == ["ours"]


def test_a_thread_that_ignores_warnings_does_not_silence_others():
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(1) as executor:
        warnings.simplefilter("always")
        with ignore_warnings(FiedlerWarning):
            warn("of this thread")
            executor.submit(warn, "of another thread").result()

    assert [str(warning.message) for warning in caught] == ["of another thread"]


def test_where_each_thread_has_filters_of_its_own_they_are_changed_in_the_block_alone(monkeypatch):
    """As from Python 3.14 on, if it is asked to."""
    monkeypatch.setattr(_foreign_warnings, "sys", SimpleNamespace(flags=SimpleNamespace(context_aware_warnings=True)))
    before = list(warnings.filters)

    with ignore_foreign_warnings():
        described = {_foreign_warnings._described(entry) for entry in warnings.filters}
        assert described >= set(_foreign_warnings.IGNORED)

    assert list(warnings.filters) == before
