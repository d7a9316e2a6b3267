"""Jobs in actors of a Ray cluster, which decode where they compute. No other file imports Ray.

Jobs, reports and results are small; images, features and shards never pass through Ray's object store: actors
read images and write shards in folders that all nodes share.
"""

import os
import pickle
import re
import secrets
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ray
from ray._private import ray_constants
from ray.exceptions import RayError

from layerboard.benchmark.engines import base
from layerboard.benchmark.engines.base import Job, JobQueue, Result, Work, WorkerDiedError, WorkerSlot
from layerboard.benchmark.engines.progress import Message, Reporter
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.atomic import remove_leftovers, temporary_folder
from layerboard.zoo.errors import InputError, ensure, shortened

# clients of a cluster of this process must know the token; Ray would write its own into the user's home
TOKEN = secrets.token_hex(32)
STORE_BYTES = 100 * 2**20  # Ray's object store on this machine; a run puts next to nothing there
FOLDERS = "lb-"  # prefix of the names of such folders
LONGEST_FOLDER = 28  # maximum length of the path of temporary files with which Ray's socket names fit
PATIENCE = 60  # number of pauses without an actor after which waiting is reported
WAITING = "a worker waits for room on the Ray cluster"
ANSWER = 10  # seconds that a remote cluster has to answer; Ray would wait for two minutes
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # the empty frame with which both sides of HTTP/2 begin
ATTEMPTS = 2  # to start a cluster on this machine: a busy machine may take longer than Ray waits


class RayEngine(base.Engine):
    """Runs jobs in actors: one per GPU of the cluster, or ``--workers`` of one processor each without GPUs.

    A lost actor costs the unfinished part of its piece, which another one does; a new actor replaces it as
    soon as the cluster has room. A cluster that this process is connected to is used as it is.
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def run(self, function: Work[Job, Result], jobs: JobQueue[Job, Result], report: Reporter) -> None:
        if jobs.over:
            return
        sent = pickle.dumps(function)
        with _cluster(self._request):
            slots = enumerate(self._slots()[: jobs.width], start=1)  # stages of this process have 0
            jobs.dispatch([_Remote[Job, Result](*each, sent, report) for each in slots])

    def _slots(self) -> list[WorkerSlot]:
        """One slot per GPU of the cluster, or per worker."""
        there, workers = ray.cluster_resources(), self._request.workers
        gpus = 0 if self._request.device == "cpu" else int(there.get("GPU", 0))
        if gpus:
            return [WorkerSlot("cuda", max(1, min(workers, int(there.get("CPU", 1)) // gpus)))] * gpus
        ensure(not self._request.device.startswith("cuda"), "the Ray cluster has no GPU; leave out --device")
        return [WorkerSlot("cpu", 1)] * workers


class _Remote(base.Worker[Job, Result]):
    """An actor as a worker, or the actor that replaces it."""

    def __init__(self, number: int, slot: WorkerSlot, function: bytes, report: Reporter) -> None:
        self._number, self._function, self._report = number, function, report
        self.slot = slot
        self.process = 0  # id of the actor's process on its machine
        self._actor: Any = None
        self._starting: Any = None
        self._failures = self._waited = 0
        self._open: set[tuple[int, int]] = set()  # stages that the actor reports

    def ready(self) -> bool:
        """Whether the actor is available; requests one and waits. Raises WorkerDiedError if none starts."""
        if self._actor is None:
            gpus, threads = int(self.slot.device == "cuda"), self.slot.threads
            actor = ray.remote(num_cpus=threads, num_gpus=gpus, scheduling_strategy="SPREAD")(_Actor)
            self._actor = actor.remote(self._function, self._number, threads)
            self._starting = self._actor.process.remote()
        if self._starting is not None:
            there, _ = ray.wait([self._starting], timeout=base.PAUSE)
            if not there:
                self._waited += 1
                if self._waited == PATIENCE:
                    self._report.say(WAITING)
                return False
            try:
                self.process = ray.get(self._starting)
            except RayError as error:
                self._actor = None
                self._failures += 1
                if self._failures == base.LOSSES:
                    raise WorkerDiedError(f"no worker starts on the Ray cluster: {_reason(error)}") from error
                time.sleep(base.PAUSE)
            self._starting = None
        return self._actor is not None

    def do(self, job: Job) -> Result:
        self._failures = 0
        try:
            for part in self._actor.do.options(num_returns="streaming").remote(pickle.dumps(job)):
                for kind, key, content in ray.get(part):
                    if kind == "raised":
                        raise content
                    if kind == "result":
                        result: Result = content
                    else:
                        self._forward((kind, key, content))
        except RayError as error:
            self._actor = None
            for stage in {*self._open}:
                self._forward(("stop", stage, None))
            raise base.WorkerLostError(_reason(error)) from error
        return result

    def _forward(self, message: Message) -> None:
        """Hand on a report, and remember which stages are open."""
        kind, stage, _ = message
        if kind == "start":
            self._open.add(stage)
        elif kind == "stop":
            self._open.discard(stage)
        self._report.send(message)

    def end(self) -> None:
        with suppress(RayError):
            if self._actor is not None:
                ray.kill(self._actor)


class _Actor:
    """The remote part: it keeps the function with the backbone that it has loaded."""

    def __init__(self, function: bytes, number: int, threads: int) -> None:
        self._sent, self._number, self._threads = function, number, threads
        self._function: Callable[[Any, Reporter], Any] | None = None

    def process(self) -> int:
        return os.getpid()

    def do(self, job: bytes) -> Iterator[list[Message]]:
        """Reports while the job is done, as they come; at the end its result or the error that it raised."""
        waiting: SimpleQueue[Message] = SimpleQueue()
        threading.Thread(target=self._work, args=(job, waiting), daemon=True).start()
        messages: list[Message] = []
        while not messages or messages[-1][0] not in ("result", "raised"):
            messages = [waiting.get()]
            while not waiting.empty():
                messages.append(waiting.get())
            yield messages

    def _work(self, job: bytes, waiting: "SimpleQueue[Message]") -> None:
        key = (self._number, 0)
        try:
            import torch

            torch.set_num_threads(self._threads)
            self._function = self._function or pickle.loads(self._sent)  # noqa: S301  # the driver's
            sent = pickle.loads(job)  # noqa: S301  # the driver's
            result = self._function(sent, Reporter(waiting.put, self._number))
        except BaseException as error:
            waiting.put(("raised", key, error))
        else:
            waiting.put(("result", key, result))


@contextmanager
def _cluster(request: Request) -> Iterator[None]:
    """A connection to the cluster of the request, or to a new cluster on this machine, which ends with it."""
    if ray.is_initialized():
        yield
        return
    # Ray handles SIGTERM in its own way; commands do it in theirs
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main else None
    with ExitStack() as stack:
        folder = None if request.cluster else stack.enter_context(_private_folder())
        stack.enter_context(_environment(private=folder is not None))
        stack.callback(ray.shutdown)
        _connect(request, folder)
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        yield


@contextmanager
def _environment(*, private: bool) -> Iterator[None]:
    """Restore the variables of Ray at the end; a private cluster sets its own, whatever the user's are."""
    before, several = dict(os.environ), ray_constants.ENABLE_RAY_CLUSTER
    if private:
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
            os.environ.pop(name, None)  # without a mode, Ray demands a token it is given
        # no usage statistics are sent, and only this cluster knows the token
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": TOKEN}
        # actors have the priority of other processes; with Ray's 15 they starve on a busy machine
        os.environ.setdefault("RAY_worker_niceness", "0")
        # what Ray does by itself on Windows and macOS: no machine but this one, so it listens here alone
        os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
        ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = several
        for name in [name for name in os.environ if name.startswith("RAY_")]:  # also what Ray has set
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if name.startswith("RAY_")})


def _connect(request: Request, folder: Path | None) -> None:
    """Connect to the cluster, or start one; raises InputError if it cannot be reached."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "critical"}
    if folder is None:
        try:
            if at := re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d+)", str(request.cluster)):
                _require_http2(at[1], int(at[2]))
            ray.init(address=request.cluster, **options)
        except (OSError, OverflowError, RuntimeError, ValueError, RayError) as error:
            address, reason = shortened(request.cluster), _reason(error)
            raise InputError(f"there is no Ray cluster at {address}: {reason}") from error
        return
    options |= {"include_dashboard": False, "object_store_memory": STORE_BYTES, "_temp_dir": str(folder)}
    for left in reversed(range(ATTEMPTS)):
        try:
            ray.init(address="local", num_cpus=max(request.workers, os.cpu_count() or 1), **options)
            return
        except Exception as error:  # Ray raises this very class
            ray.shutdown()
            if not left:
                raise WorkerDiedError(f"Ray does not start on this machine: {_reason(error)}") from error


def _require_http2(host: str, port: int) -> None:
    """Raise OSError unless an HTTP/2 server answers within `ANSWER` seconds, as all servers of Ray are.

    Ray itself would wait for minutes. A server of a cluster with TLS is not checked.
    """
    with socket.create_connection((host, port), ANSWER) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return
        head = b""
        with suppress(OSError):
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS)
            head = connection.recv(len(SETTINGS))
        if head[3:4] != SETTINGS[3:4]:  # the type of a frame
            raise OSError("what listens there is not Ray, or takes TLS alone, which needs RAY_USE_TLS=1")


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder for Ray's files that only this user can enter; those of killed runs are removed.

    Ray lets everybody into the folder itself, so there is one above it. Its name is short, since names of
    Ray's sockets have at most 107 bytes.
    """
    usual = tempfile.gettempdir()
    short = usual if len(usual) <= LONGEST_FOLDER or not os.access("/tmp", os.W_OK) else "/tmp"  # noqa: S108
    remove_leftovers([Path(short)], FOLDERS, below=False)
    with temporary_folder(Path(short), FOLDERS) as folder:
        yield folder / "r"


def _reason(error: BaseException) -> str:
    """The first sentence of the last line of an error of Ray, which is the most informative."""
    text = str(getattr(error, "strerror", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return shortened(lines[-1].partition(". ")[0] if lines else type(error).__name__)
