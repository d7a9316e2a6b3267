"""Work in pieces: every shard once, whole backbones where they are small, scores after the last shard."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from layerboard.benchmark.engines.base import WorkerSlot
from layerboard.benchmark.jobs import pieces
from layerboard.benchmark.jobs.job import BackboneJobs
from layerboard.benchmark.jobs.pieces import Pieces
from layerboard.benchmark.passes.failures import Failure
from layerboard.benchmark.passes.one_pass import PassResult
from tests.benchmark.jobs.test_jobs import planned, prepared

Make = Callable[..., Pieces]


@pytest.fixture(scope="module")
def make(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes the queue of a run of two backbones, of which nothing is there."""
    plan = planned(data)
    found = prepared(plan, tmp_path_factory.mktemp("place"))

    def made(workers: int, device: str = "") -> Pieces:
        queue = Pieces(found.backbones)
        queue.open([WorkerSlot(device, 1)] * workers)
        return queue

    return made


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backbones that are large enough to be shared."""
    monkeypatch.setattr(pieces, "LEAST_SECONDS", 0.0)


def taken(queue: Pieces, worker: int = 0) -> tuple[int, BackboneJobs]:
    found = queue.take(worker)
    assert found is not None
    assert isinstance(found[0], int)
    return found[0], found[1]


def names(given: Sequence[BackboneJobs]) -> list[str]:
    return [piece.setup.spec.name for piece in given]


def test_small_backbones_stay_whole_and_one_worker_takes_them_in_order(make: Make) -> None:
    for workers in (1, 2):
        queue, given = make(workers), []
        assert queue.width == 2
        images = queue.images
        assert images > 0
        while not queue.over:
            key, piece = taken(queue)
            assert piece.passes
            assert piece.scores
            given.append(piece)
            queue.done(key, PassResult(images // 2))
        assert sorted(names(given)) == ["mini-fs", "mini-resnet"]
        if workers == 1:
            assert names(given) == ["mini-fs", "mini-resnet"]


@pytest.mark.usefixtures("shared")
def test_large_ones_are_shared_and_every_shard_is_shown_once(make: Make) -> None:
    queue, shown = make(3), Counter[tuple[str, object, int]]()
    given, out = [], {}
    assert queue.width > 3
    while not queue.over:
        for worker in range(3):
            if worker not in out and (found := queue.take(worker)) is not None:
                out[worker] = found
                given.append(found[1])
        worker = next(iter(out))
        key, piece = out.pop(worker)
        for job in piece.passes:
            shown.update((piece.setup.spec.name, job.pass_.source.key, number) for number in job.shards)
        queue.done(key, PassResult(1))
    assert set(shown.values()) == {1}
    whole = make(1)
    jobs = [job for _ in range(2) for job in taken(whole)[1].passes]
    assert len(shown) == sum(len(job.shards) for job in jobs)
    assert len(given) > 6
    for name in ("mini-fs", "mini-resnet"):
        own = [piece for piece in given if piece.setup.spec.name == name]
        assert [bool(piece.scores) for piece in own] == [False] * (len(own) - 1) + [True]
        assert sum(bool(piece.backbone_tasks) for piece in own) <= 1


@pytest.mark.usefixtures("shared")
def test_scores_know_what_went_wrong_in_other_pieces(make: Make) -> None:
    queue = make(2)
    lost = Failure("mini-fs", "knn", "why", bad_input=True, key="knn.key")
    while True:
        key, piece = taken(queue)
        if piece.scores:
            break
        queue.done(key, PassResult(1, failures=(lost,), refusals={("mini-fs", "davis.key"): "no"}))
    assert piece.before.failures == (lost,)
    assert piece.before.refusals == {("mini-fs", "davis.key"): "no"}


@pytest.mark.usefixtures("shared")
def test_a_worker_stays_with_its_backbone_and_a_lost_piece_waits_again(make: Make) -> None:
    queue = make(2)
    before = queue.images
    first, piece = taken(queue, 0)
    other, beside = taken(queue, 1)
    assert piece.setup.spec.name != beside.setup.spec.name
    queue.done(other, PassResult(1))
    assert taken(queue, 1)[1].setup.spec.name == beside.setup.spec.name
    left = queue.images
    queue.give_back(first)
    assert left < queue.images < before
    again = taken(queue, 0)[1]
    assert again.passes[0].pass_.source.key == piece.passes[0].pass_.source.key
    assert again.passes[0].shards.start == piece.passes[0].shards.start


def test_pieces_are_placed_where_their_worker_is(make: Make) -> None:
    _, piece = taken(make(2, "cuda:1"), 1)
    setups = {piece.setup.device.index, *(job.setup.device.index for job in piece.scores)}
    assert setups == {1}
    assert piece.setup.request.workers == 1
    assert taken(make(2), 1)[1].setup.device.type == "cpu"


def test_what_takes_longest_begins_first(make: Make) -> None:
    queue = make(2)
    seconds = {left.setup.spec.name: left.seconds for left in queue._every}
    _, piece = taken(queue)
    assert seconds[piece.setup.spec.name] == max(seconds.values())


@pytest.mark.usefixtures("shared")
def test_what_comes_back_is_not_joined_with_what_another_worker_has(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make(8)
    first, _ = taken(queue, 0)
    name = queue._out[first][1].setup.spec.name
    while True:  # another worker's piece of the same backbone, from the middle of it
        key, beside = taken(queue, len(queue._out))
        if beside.setup.spec.name == name:
            break
    held = {(job.pass_.source.key, number) for job in beside.passes for number in job.shards}
    queue.give_back(first)
    monkeypatch.setattr(pieces, "LEAST_SECONDS", 1e9)  # all that is left becomes one piece
    queue._last = {0: queue._out[key][0]}
    _, rest = taken(queue, 0)
    assert rest.setup.spec.name == name
    given = {(job.pass_.source.key, number) for job in rest.passes for number in job.shards}
    assert given
    assert not given & held
