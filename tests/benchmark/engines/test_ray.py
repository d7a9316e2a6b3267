"""A Ray cluster of this machine: the same records, also when an actor or the driver is killed."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from layerboard.benchmark.engines import ray as engine
from layerboard.benchmark.engines.base import WorkerDiedError
from layerboard.benchmark.engines.progress import Message
from layerboard.benchmark.engines.ray import RayEngine
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs import pieces
from layerboard.leaderboards.records.record import read_records
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.engines.own_worker import halved, niceness
from tests.benchmark.engines.test_engines import Heard
from tests.benchmark.runs import QUICK, comparable, environment, run, shards
from workshop.list_queue import ListQueue, results_in_order

TASKS = ["knn", "davis", "cka"]

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of three processors that lasts for all tests, and the home of its user."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setattr(engine, "ATTEMPTS", 6)  # on a machine that other tests keep busy
        patch.setenv("RAY_AUTH_MODE", "disabled")  # which a cluster of this machine does not heed
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(home / "token"))
        before = set(_folders_of_clusters())
        with engine._cluster(Request(engine="ray", workers=3)):
            (folder,) = set(_folders_of_clusters()) - before
            assert folder.stat().st_mode & 0o777 == 0o700
            assert any(folder.iterdir())
            yield home
        assert not folder.exists()
        assert list(home.iterdir()) == []  # nothing is written into the home of the user
        assert os.environ["RAY_AUTH_MODE"] == "disabled"


def assert_same_bytes(records: pd.DataFrame, whole: Whole) -> None:
    """Equal to the last bit in all columns but times."""
    expected = whole.records.query("task in @TASKS")
    pd.testing.assert_frame_equal(comparable(records), comparable(expected), check_exact=True)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_actors_report_give_results_in_order_and_raise_what_is_wrong() -> None:
    ray, heard = RayEngine(Request(engine="ray", workers=2)), Heard()
    assert results_in_order(ray, halved, [2, 4, 6], heard) == [1, 2, 3]
    assert sorted(heard.lines) == ["halved 2", "halved 4", "halved 6"]
    with pytest.raises(InputError, match="3 is odd"):
        results_in_order(ray, halved, [2, 3], heard)
    assert results_in_order(ray, niceness, [0], heard) == [os.nice(0)]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_job_that_its_workers_die_of_ends_the_run_with_a_sentence() -> None:
    heard = Heard()
    lost = r"a piece of the work lost its worker 3 times \('The actor is dead because .* has died'\)"
    with pytest.raises(WorkerDiedError, match=lost):
        results_in_order(RayEngine(Request(engine="ray", workers=1)), halved, [2, -1], heard)
    assert heard.lines[0] == "halved 2"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="Linux says who listens")
@pytest.mark.usefixtures("cluster")
def test_nothing_listens_for_other_machines() -> None:
    folders = "|".join(str(folder) for folder in _folders_of_clusters())
    mine = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_of_a_cluster(path, folders)]
    found = _listening([os.getpid(), *mine])
    assert len(found) >= 3  # the server of the cluster, the raylet and its agent
    assert {address for address in found if not address.endswith("0100007F")} == set()
    assert engine.ray.get(engine.ray.remote(lambda: os.environ.get("RAY_AUTH_MODE")).remote()) != "disabled"


def _is_of_a_cluster(process: Path, folders: str) -> bool:
    try:
        return re.search(folders, (process / "cmdline").read_text()) is not None
    except OSError:
        return False


def _listening(processes: Sequence[int]) -> list[str]:
    """Addresses, in hexadecimal digits, at which processes listen for TCP."""
    sockets = set()
    for number in processes:
        for path in Path(f"/proc/{number}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets]


def test_folders_of_killed_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    monkeypatch.setattr(engine, "FOLDERS", f"lb-test-{os.getpid()}-")
    with engine._private_folder() as living:
        left = living.parent.with_name(f"{engine.FOLDERS}left")
        (left / "r").mkdir(parents=True)
        for path in (left, living.parent):
            os.utime(path, (0, 0))
        with engine._private_folder():
            assert living.parent.exists()  # its run holds a lock
            assert not left.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_records_are_the_same_though_an_actor_is_killed(
    tmp_path: Path, whole: Whole, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: dict[int, int] = {}
    killed: list[int] = []
    replaced = threading.Event()
    do, forward = engine._Remote.do, engine._Remote._forward

    def doing(self: Any, job: object) -> object:
        if killed and processes[self._number] == killed[0] and self.process != killed[0]:
            replaced.set()
        processes[self._number] = self.process
        if killed and self.process != killed[0]:
            replaced.wait(240)  # what is left would else be done before another one is there
        return do(self, job)

    def forwarding(self: Any, message: Message) -> None:
        forward(self, message)
        if message[0] == "advance" and not killed:
            killed.append(processes[message[1][0]])
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(pieces, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(engine._Remote, "do", doing)
    monkeypatch.setattr(engine._Remote, "_forward", forwarding)
    records = run(tmp_path, BACKBONES, *TASKS, data=data, engine="ray", workers=2)
    assert len(killed) == 1
    assert killed[0] not in processes.values()  # another one took its place
    assert_same_bytes(records, whole)


@pytest.mark.slow
def test_a_killed_driver_leaves_what_was_finished_and_nothing_that_runs(
    tmp_path: Path, whole: Whole, data: Path
) -> None:
    place = tmp_path
    mark = f"run in {place}"
    logs = set(_folders_of_clusters())
    folders = ("--output", str(place / "out"), "--cache", str(place / "cache"), "--data", str(data))
    options = ("--layers", QUICK, "--no-floor", "--engine", "ray", "--workers", "2")
    driver = subprocess.Popen(
        [sys.executable, "-m", "layerboard", "run", "-b", *BACKBONES, "-t", *TASKS, *options, *folders],
        # agents of Ray would look for a minute for their server, which is gone with the driver
        env=environment() | {"WHOSE": mark, "RAY_gcs_rpc_server_reconnect_timeout_s": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 240
    while len(shards(place / "cache")) < 2 and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    kept = shards(place / "cache")
    assert kept
    while _started_with(mark) and time.monotonic() < end:
        time.sleep(0.2)
    assert _started_with(mark) == []
    for folder in set(_folders_of_clusters()) - logs:  # docs/how-to/scale.md: what SIGKILL leaves
        shutil.rmtree(folder)
    records = run(place, BACKBONES, *TASKS, data=data)
    assert kept <= shards(place / "cache")
    assert_same_bytes(records, whole)
    assert len(read_records([place / "out" / "records"])) == len(records)


def _folders_of_clusters() -> list[Path]:
    return [*Path(tempfile.gettempdir()).glob("lb-*")]


def _started_with(mark: str) -> list[str]:
    """Processes in whose environment a variable is."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [line for line in found if line]


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The address of a server that gives everybody one answer, and is silent then."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connections.append(server.accept()[0])
                    connections[-1].sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()  # a connection accepted late, on a busy machine, is closed too
        for each in connections:
            each.close()


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a connection to a cluster, and without patience."""
    monkeypatch.setattr(engine.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(engine, "ANSWER", 0.5)


@pytest.mark.usefixtures("apart")
def test_a_cluster_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise ConnectionError("Could not find any running Ray instance.\nIs there one?")

    monkeypatch.setattr(engine.ray, "init", init)
    monkeypatch.setattr(engine.ray, "shutdown", lambda: None)
    before = dict(os.environ)
    with answering(engine.SETTINGS) as address:
        request = Request(engine=f"ray:{address}")
        with pytest.raises(InputError, match=f"there is no Ray cluster at '{address}': 'Is there one"):
            RayEngine(request).run(halved, ListQueue([2]), Heard())
    monkeypatch.setattr(engine, "ATTEMPTS", 1)
    with pytest.raises(WorkerDiedError, match="Ray does not start on this machine: 'Is there one"):
        RayEngine(Request(engine="ray")).run(halved, ListQueue([2]), Heard())
    assert dict(os.environ) == before


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_of_nobody_is_answered_soon(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{scheme}127.0.0.1:{server.getsockname()[1]}"
    begin = time.monotonic()
    with pytest.raises(InputError, match=f"no Ray cluster at '{address}': 'Connection refused'"):
        RayEngine(Request(engine=f"ray:{address}")).run(halved, ListQueue([2]), Heard())
    assert time.monotonic() - begin < 10


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_what_listens_and_is_not_ray_is_told_soon(answer: bytes) -> None:
    with answering(answer) as address, pytest.raises(InputError, match="what listens there is not Ray"):
        RayEngine(Request(engine=f"ray:{address}")).run(halved, ListQueue([2]), Heard())


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(("answer", "tls"), [(engine.SETTINGS, ""), (b"", "1")])
def test_what_may_be_ray_is_connected_to(monkeypatch: pytest.MonkeyPatch, answer: bytes, tls: str) -> None:
    monkeypatch.setenv("RAY_USE_TLS", tls)

    def init(**options: object) -> None:
        raise ConnectionError(f"asked {options['address']}")

    monkeypatch.setattr(engine.ray, "init", init)
    with answering(answer) as address, pytest.raises(InputError, match=f"asked {address}"):
        RayEngine(Request(engine=f"ray:{address}")).run(halved, ListQueue([2]), Heard())
