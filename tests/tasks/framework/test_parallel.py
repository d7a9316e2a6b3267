"""Layers that are scored together take one core each, and only as many threads as are of use."""

from threading import get_ident

import pytest
import sklearn.cluster  # noqa: F401 - loads its own OpenMP
import torch  # noqa: F401 - likewise
from threadpoolctl import threadpool_info, threadpool_limits

from layerboard.tasks.framework.task import map_in_parallel


def threads(job: int) -> tuple[int, set[int]]:
    """The thread that works, and how many threads its libraries would use."""
    sum(range(1_000_000))  # long enough for others to begin
    return get_ident(), {library["num_threads"] for library in threadpool_info()}


@pytest.mark.parametrize(("size", "given", "most"), [(9, 8, 2), (4 << 20, 8, 4), (1 << 29, 8, 2), (9, 1, 1)])
def test_each_of_a_few_threads_has_one_core(size: int, given: int, most: int) -> None:
    with threadpool_limits(3):  # tests that run side by side have one core each
        answers = map_in_parallel(threads, [*range(12)], given, size)
        assert {library["num_threads"] for library in threadpool_info()} == {3}
    assert min(2, most) <= len({thread for thread, _ in answers}) <= most
    assert all(counts == {1} for _, counts in answers)


def test_a_large_job_has_all_cores() -> None:
    alone, counts = map_in_parallel(threads, [0, 1], 8, 1 << 31)[0]
    assert (alone, counts) == (get_ident(), {library["num_threads"] for library in threadpool_info()})
