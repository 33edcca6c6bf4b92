import subprocess
import sys
import threading
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_info, threadpool_limits

from fiedler.core import parallel as blocks
from fiedler.core import sparse as sparse_module
from fiedler.core.arrays import softmax, to_numpy
from fiedler.core.fitting import listen
from fiedler.core.parallel import map_blocks, map_pieces, map_rows, map_tasks, one_thread
from fiedler.core.sparse import matmul


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def openmp_threads():
    """The number of threads that scikit-learn would use if it were called by this thread."""
    return _openmp_effective_n_threads()


def test_results_are_in_order_and_errors_are_raised():
    blocks = [slice(start, start + 1) for start in range(50)]

    assert map_blocks(lambda rows: rows.start, blocks, np.zeros(50), n_jobs=3) == list(range(50))
    with pytest.raises(ZeroDivisionError):
        map_blocks(lambda rows: 1 / (rows.start - 7), blocks, np.zeros(50), n_jobs=3)


def test_overlapping_calls_restore_the_number_of_blas_threads():
    before, first_inside, second_done = blas_threads(), threading.Event(), threading.Event()

    def slow(rows):
        first_inside.set()
        assert second_done.wait(10)

    blocks = [slice(0, 1), slice(1, 2)]
    thread = threading.Thread(target=map_blocks, args=(slow, blocks, np.zeros(2)), kwargs={"n_jobs": 2})
    thread.start()
    assert first_inside.wait(10)
    map_blocks(lambda rows: None, blocks, np.zeros(2), n_jobs=2)
    second_done.set()
    thread.join()

    assert blas_threads() == before


def test_blocks_and_nested_contexts_use_one_thread_each():
    with threadpool_limits(2):
        with one_thread() as n_threads, one_thread():
            assert (n_threads, openmp_threads(), set(blas_threads())) == (2, 1, {1})
        inside = map_blocks(lambda rows: openmp_threads(), [slice(0, 1), slice(1, 2)], np.zeros(2), n_jobs=2)
        assert inside == [1, 1]
        assert openmp_threads() == 2


def test_threads_are_restored_if_a_blas_uses_openmp():
    """As that of faiss does: whoever sets its threads sets those of OpenMP."""
    pytest.importorskip("faiss")
    with threadpool_limits(2):
        with one_thread():
            assert openmp_threads() == 1
        assert openmp_threads() == 2


LATER_LIBRARY = """
from threadpoolctl import threadpool_info, threadpool_limits
from fiedler.core.parallel import one_thread

with one_thread():
    pass
import torch

with threadpool_limits(2), one_thread():
    print({pool["num_threads"] for pool in threadpool_info()})
"""


@pytest.mark.slow
def test_a_library_that_is_loaded_after_the_first_use_is_limited_too():
    pytest.importorskip("torch")

    assert subprocess.check_output([sys.executable, "-c", LATER_LIBRARY], text=True).strip() == "{1}"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_block_is_reported(n_jobs):
    ticks = []
    blocks = [slice(start, start + 1) for start in range(7)]
    map_blocks(lambda rows: None, blocks, np.zeros(7), n_jobs=n_jobs, tick=lambda: ticks.append(1))
    assert len(ticks) == 7


INTERRUPTED = """
import _thread, signal, time
import numpy as np
from fiedler.core.parallel import map_blocks

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background does not have
begun = []

def work(rows):
    begun.append(rows)
    if len(begun) == 2:
        _thread.interrupt_main()
    time.sleep(0.05)

try:
    map_blocks(work, [slice(i, i + 1) for i in range(400)], np.zeros(400), n_jobs=2)
except KeyboardInterrupt:
    print(len(begun))
"""


def test_an_interrupt_drops_the_blocks_that_have_not_begun():
    finished = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True)

    assert 2 <= int(finished.stdout) < 100


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_tasks_are_reported_and_their_results_are_in_order(n_jobs):
    events = Mock()
    with listen(events):
        assert map_tasks(lambda number: number**2, [3, 1, 2], "squares", n_jobs) == [9, 1, 4]

    assert [stage.name for (stage,), _ in events.begin.call_args_list] == ["squares"]
    assert events.advance.call_count == 3
    assert map_tasks(abs, [], "nothing", n_jobs) == []


def test_tasks_use_one_thread_each():
    with threadpool_limits(2):
        assert map_tasks(lambda _: openmp_threads(), [0, 1], "counting", n_jobs=2) == [1, 1]
        assert openmp_threads() == 2


TASKS = """
import os, signal, threading, time
from fiedler.core.parallel import map_tasks
from fiedler.core.fitting import check_interrupt

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background does not have
both, ended = threading.Barrier(2), []

def work(item):
    both.wait()
    if item == 0:
        {first}
    try:
        while True:
            check_interrupt()
            time.sleep(0.01)
    finally:
        ended.append(item)

try:
    map_tasks(work, [0, 1], "waiting", n_jobs=2)
except BaseException as error:
    print(type(error).__name__, sorted(ended))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "output"),
    [
        ("time.sleep(0.2); os.kill(os.getpid(), signal.SIGINT)", "KeyboardInterrupt [0, 1]"),
        ("1 / 0", "ZeroDivisionError [1]"),
    ],
)
def test_an_interrupt_or_error_ends_the_tasks_that_are_running(first, output):
    command = [sys.executable, "-c", TASKS.format(first=first)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert finished.stdout.strip() == output
    assert not finished.stderr


def test_a_worker_thread_starts_no_further_threads():
    def names(_):
        blocks = [slice(0, 1), slice(1, 2)]
        inner = map_blocks(lambda rows: threading.get_ident(), blocks, np.zeros(2), n_jobs=2)
        return {threading.get_ident(), *inner}

    threads = map_tasks(names, [0, 1], "names", n_jobs=2)
    assert [len(idents) for idents in threads] == [1, 1]
    assert threading.get_ident() not in set.union(*threads)


def test_an_interrupt_while_entering_restores_the_threads(monkeypatch):
    before = blas_threads()
    with threadpool_limits(2):
        context = type(one_thread())()
        with context:
            pass
        monkeypatch.setattr(context, "_find_libraries", lambda: None)
        monkeypatch.setattr(context, "blas", Mock(lib_controllers=[], limit=Mock(side_effect=KeyboardInterrupt)))
        with pytest.raises(KeyboardInterrupt), context:
            pass
        assert (context.n_inside, openmp_threads()) == (0, 2)
    assert blas_threads() == before


def test_an_interrupted_search_for_libraries_is_repeated(monkeypatch):
    context = type(one_thread())()
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "ThreadpoolController", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt), context:
            pass
    with threadpool_limits(2), context:
        assert (openmp_threads(), set(blas_threads())) == (1, {1})


def test_pieces_cover_the_rows_once_and_report_every_percent(monkeypatch):
    """However long the pieces take; later ones have at most four times the rows of the one before."""
    times = iter(np.cumsum(np.random.RandomState(0).uniform(0, 1, size=2000)))
    monkeypatch.setattr(blocks, "perf_counter", lambda: next(times))
    events = Mock()
    with listen(events):
        parts = map_pieces(lambda rows: (rows.start, rows.stop), 20_000, "searching")

    starts, stops = zip(*parts)
    assert (starts[0], stops[0], stops[-1]) == (0, blocks.FIRST_PIECE, 20_000)
    assert starts[1:] == stops[:-1]
    sizes = np.subtract(stops, starts)
    assert (sizes[1:] <= 4 * sizes[:-1]).all()
    assert events.advance.call_count == 100


def test_rows_by_blocks_equal_all_rows_at_once(backend, rng, monkeypatch):
    monkeypatch.setattr("fiedler.core.parallel.ROW_BLOCK_BYTES", 1)
    values = rng.normal(size=(200, 3))

    assert_allclose(to_numpy(map_rows(softmax, backend(values))), softmax(values))


def test_threaded_products_equal_plain_products(rng, monkeypatch):
    monkeypatch.setattr(sparse_module, "MIN_THREADED_MULTIPLICATIONS", 0)
    S, X = sp.csr_array(sp.random(101, 60, density=0.1, random_state=0)), rng.normal(size=(60, 4))

    assert_allclose(matmul(S, X), S.toarray() @ X)
