"""The work of a run in pieces: whole backbones, or shards if several workers have more to do.

Scores of a backbone begin when its last shard exists.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from math import inf
from time import perf_counter

from layerboard.benchmark.engines.base import JobQueue, WorkerSlot
from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.jobs.backbone_tasks import run_backbone_tasks
from layerboard.benchmark.jobs.estimate import image_seconds
from layerboard.benchmark.jobs.job import BackboneJobs, Job, ScoreJob, Setup
from layerboard.benchmark.jobs.passes import BackboneCache, run_job
from layerboard.benchmark.jobs.scores import run_scores
from layerboard.benchmark.passes.one_pass import PassResult

# Minimum seconds of a piece, as estimated: each worker that joins in loads the backbone once more, so
# backbones of the mini suite stay whole.
LEAST_SECONDS = 60.0
# Pieces per worker that would be left if all had the size of the next one: they become smaller towards the
# end, so that workers stop at about the same time.
ROUNDS = 2

Finish = Callable[[Sequence[ScoreJob], PassResult, Reporter], PassResult]
"""What is made of the stored results of a backbone's passes; it gets their failures, and returns its own."""


class PassesAndScores:
    """The work of a worker, in whichever process: each image once, then what is made of every layer.

    That are the scores, or what ``finish`` makes in their place of the tasks of a backbone. It keeps what the
    next piece may need, too: the last loaded backbone, and views of images.
    """

    def __init__(self, finish: Finish = run_scores) -> None:
        self._finish = finish
        self._cache: BackboneCache | None = None

    def __call__(self, jobs: BackboneJobs, report: Reporter) -> PassResult:
        if self._cache is None or self._cache.setup != jobs.setup:
            self._cache = BackboneCache(jobs.setup, self._cache.views if self._cache else None)
        passed = PassResult.joined(run_job(job, self._cache, report) for job in jobs.passes)
        asked = run_backbone_tasks(jobs.backbone_tasks, self._cache, report)
        finished = self._finish(jobs.scores, PassResult.joined([jobs.before, passed]), report)
        return PassResult.joined([passed, asked, finished])


@dataclass(frozen=True, slots=True)
class _Shard:
    order: int  # index of the pass among those of its backbone
    job: Job
    number: int
    images: int
    seconds: float  # estimated


@dataclass
class _Left:
    """Remaining work of a backbone."""

    setup: Setup
    shards: deque[_Shard]  # shards that no worker has taken; likewise tasks on the backbone, and scores
    backbone_tasks: tuple[ScoreJob, ...]
    scores: tuple[ScoreJob, ...]
    taken: dict[int, list[_Shard]] = field(default_factory=dict)  # shards of pieces that workers have
    done: list[PassResult] = field(default_factory=list)  # results of other pieces
    guessed: float = 0.0  # estimated seconds of these, and the seconds that they took
    measured: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether a worker could begin a piece; scores begin when nothing else is left."""
        return self.ready or bool(self.backbone_tasks or (self.scores and not self.shards and not self.taken))

    @property
    def ready(self) -> bool:
        """Whether a worker could take the next shard: not while what it remembers is being computed."""
        if not self.shards or not self.shards[0].job.memories:
            return bool(self.shards)
        return all(shard.job.memories for shards in self.taken.values() for shard in shards)

    @property
    def seconds(self) -> float:
        """Estimated seconds of its shards."""
        return sum(shard.seconds for shard in self.shards)


def _left_of(jobs: BackboneJobs) -> _Left:
    shards: deque[_Shard] = deque()
    for job in sorted(jobs.passes, key=lambda job: bool(job.memories)):
        source = job.pass_.source
        second = image_seconds(jobs.setup, source.view)
        for number in job.missing:
            images = source.shard_images(number)
            shards.append(_Shard(len(shards), job, number, images, images * second))
    return _Left(jobs.setup, shards, jobs.backbone_tasks, jobs.scores)


class Pieces(JobQueue[BackboneJobs, PassResult]):
    """The queue of a run: the remaining work of its backbones, given out piece by piece.

    A worker stays with the backbone that it has loaded; otherwise it takes the one with most work left per
    worker, in seconds as measured during the run. A single worker takes whole backbones in order.
    """

    def __init__(self, backbones: Sequence[BackboneJobs]) -> None:
        self._slots: Sequence[WorkerSlot] = ()
        self._every = list(map(_left_of, backbones))
        self._last: dict[int, _Left] = {}
        self._out: dict[int, tuple[_Left, BackboneJobs, float]] = {}  # pieces, and when they were taken
        self._keys = count()

    def open(self, slots: Sequence[WorkerSlot]) -> None:
        self._slots = slots

    @property
    def images(self) -> int:
        """Images of the shards that no worker has taken."""
        return sum(shard.images for left in self._every for shard in left.shards)

    @property
    def width(self) -> int:
        least = max(LEAST_SECONDS, 1e-9)
        return sum(max(1, int(min(left.seconds / least, len(left.shards)))) for left in self._every)

    @property
    def over(self) -> bool:
        return not self._out and not any(left.waits for left in self._every)

    @property
    def result(self) -> PassResult:
        """Results of all backbones."""
        return PassResult.joined(result for left in self._every for result in left.done)

    def take(self, worker: int) -> tuple[int, BackboneJobs] | None:
        waiting = [left for left in self._every if left.waits]
        if not waiting:
            return None
        left = self._last.get(worker)
        if left is None or not left.waits:
            left = waiting[0]
            if len(self._slots) > 1:  # seconds left per worker of a backbone, with one more worker
                left = max(
                    waiting,
                    key=lambda each: self._seconds(each) / (1 + len(each.taken)) if each.shards else inf,
                )
        key, self._last[worker] = next(self._keys), left
        piece, shards = self._cut(left)
        self._out[key], left.taken[key] = (left, piece, perf_counter()), shards
        return key, piece.on(self._slots[worker])

    def done(self, key: int, result: PassResult) -> None:
        """Keep the result of a piece, and learn how long it took."""
        left, _, begin = self._out.pop(key)
        guessed = sum(shard.seconds for shard in left.taken.pop(key))
        left.done.append(result)
        if result.images:
            left.guessed += guessed
            left.measured += perf_counter() - begin

    def give_back(self, key: int) -> None:
        """Queue a piece again; shards that it has stored are not recomputed."""
        left, piece, _ = self._out.pop(key)
        left.shards.extendleft(reversed(left.taken.pop(key)))
        left.backbone_tasks += piece.backbone_tasks
        left.scores += piece.scores
        self._last = {worker: last for worker, last in self._last.items() if last is not left}

    def _cut(self, left: _Left) -> tuple[BackboneJobs, list[_Shard]]:
        share = sum(map(self._seconds, self._every)) / (ROUNDS * len(self._slots))
        enough = inf if len(self._slots) == 1 else max(LEAST_SECONDS, share)
        shards: list[_Shard] = []
        seconds, factor = 0.0, self._factor(left)
        while left.ready and (seconds < enough or self._seconds(left) < LEAST_SECONDS):
            shards.append(left.shards.popleft())
            seconds += factor * shards[-1].seconds
        backbone_tasks, left.backbone_tasks = left.backbone_tasks, ()
        scores: tuple[ScoreJob, ...] = ()
        if not left.shards and not left.taken:
            scores, left.scores = left.scores, ()
        before = PassResult.joined(left.done) if scores else PassResult()
        return BackboneJobs(left.setup, tuple(_ranges(shards)), backbone_tasks, scores, before), shards

    def _seconds(self, left: _Left) -> float:
        return self._factor(left) * left.seconds

    def _factor(self, left: _Left) -> float:
        """Measured by estimated seconds of the backbone's pieces, or else of all pieces; 1 without any."""
        known = [left] if left.guessed else self._every
        guessed = sum(each.guessed for each in known)
        return sum(each.measured for each in known) / guessed if guessed else 1.0


def _ranges(shards: Iterable[_Shard]) -> Iterable[Job]:
    """Jobs over ranges of shards; a range may include stored shards, but none that another worker has."""
    run = count()
    for _, group in groupby(shards, key=lambda shard: (shard.job.pass_.source.key, shard.order - next(run))):
        first, *rest = group
        yield replace(first.job, shards=range(first.number, [first, *rest][-1].number + 1))
