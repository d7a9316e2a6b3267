"""A Hub that does not answer costs one request, not the library's half minute of retries."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from layerboard.tasks.datasets.hub import read_hub_dataset
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.online import hub_answers, offline_unless

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


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Hub that has nothing at all."""

    class Refusal(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # a name of the library
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("nobody")
def test_a_backbone_of_a_hub_that_does_not_answer(tmp_path: Path) -> None:
    start = time.monotonic()
    assert not hub_answers()
    with pytest.raises(InputError, match=r"^no/such is neither a directory nor .* the Hub cannot be reached"):
        fetch("no/such", None, tmp_path)
    assert time.monotonic() - start < SOON


@pytest.mark.usefixtures("nobody")
def test_a_dataset_of_a_hub_that_does_not_answer() -> None:
    start = time.monotonic()
    with pytest.raises(InputError, match=r"^cannot load dataset hf:no/such: .*check the id and the network"):
        read_hub_dataset("hf:no/such")
    assert time.monotonic() - start < SOON
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.usefixtures("somebody")
def test_a_hub_that_answers_anything_is_there() -> None:
    assert hub_answers()


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("answers", [True, False])
def test_the_library_is_offline_only_inside(answers: bool) -> None:
    with pytest.raises(ZeroDivisionError), offline_unless(answers):  # noqa: PT012
        assert constants.HF_HUB_OFFLINE is not answers
        raise ZeroDivisionError
    assert constants.HF_HUB_OFFLINE is False
