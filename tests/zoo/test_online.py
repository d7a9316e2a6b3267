"""A Hub that does not answer costs one request, not the library's half minute of retries."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import datasets
import pytest
from huggingface_hub import constants
from huggingface_hub.utils import get_session

from layerboard.tasks.datasets.hub import read_hub_dataset
from layerboard.tasks.datasets.packs.pack import find_pack
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.online import hub_answers, hub_within_limits

CIFAR = "uoft-cs/cifar100"
SOON = 10
"""Seconds; the library alone takes 23."""


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hub at a port where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a Hub on this machine that answers so, and is the one that is asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        yield address
        server.shutdown()
        thread.join()


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Hub that has nothing at all."""

    class Refusal(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # a name of the library
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Refusal, monkeypatch):
        yield


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Hub that says it is there, and answers nothing else, which may take a second."""
    end = threading.Event()

    class Silence(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # a name of the library
            if self.path.strip("/"):
                end.wait()
            self.send_response(200)
            self.end_headers()

        def do_GET(self) -> None:
            end.wait()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Silence, monkeypatch) as address:
        files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", address)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr("layerboard.zoo.online.SILENCE", 0.3)
        yield
        end.set()


@pytest.mark.usefixtures("silent")
def test_a_silent_hub_ends_in_one_sentence(tmp_path: Path) -> None:
    start, silence = time.monotonic(), "127.0.0.1 is silent for 0.3 seconds"
    with pytest.raises(InputError, match=f"^cannot load dataset hf:no/such: {silence}; check the id"):
        read_hub_dataset("hf:no/such")
    with pytest.raises(InputError, match=f"^cannot fetch dataset hf:{CIFAR}: {silence}; check the id"):
        find_pack(f"hf:{CIFAR}")
    with pytest.raises(InputError, match=f"^no/such could not be downloaded: {silence}$"):
        fetch("no/such", None, tmp_path)
    assert time.monotonic() - start < 3 * SOON


@pytest.mark.usefixtures("nobody")
def test_a_hub_that_does_not_answer_is_said(tmp_path: Path) -> None:
    start = time.monotonic()
    assert not hub_answers()
    with pytest.raises(InputError, match=r"^no/such is neither a directory nor .* the Hub cannot be reached"):
        fetch("no/such", None, tmp_path)
    with pytest.raises(InputError, match=r"^cannot load dataset hf:no/such: .*check the id and the network"):
        read_hub_dataset("hf:no/such")
    assert time.monotonic() - start < 2 * SOON
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.usefixtures("somebody")
def test_a_hub_that_answers_anything_is_there() -> None:
    assert hub_answers()


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("answers", [True, False])
def test_the_library_is_offline_and_within_limits_only_inside(
    answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerboard.zoo.online.hub_answers", lambda: answers)
    hooks = {name: [*listed] for name, listed in get_session().event_hooks.items()}
    with pytest.raises(ZeroDivisionError), hub_within_limits() as there:  # noqa: PT012
        assert there is answers
        assert constants.HF_HUB_OFFLINE is not answers
        assert get_session().event_hooks != hooks
        raise ZeroDivisionError
    assert constants.HF_HUB_OFFLINE is False
    assert get_session().event_hooks == hooks
