import ctypes
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from layerboard.benchmark.passes.one_pass import KEPT, keep_freed_memory


@pytest.fixture(autouse=True)
def asked_anew():
    keep_freed_memory.cache_clear()
    yield
    keep_freed_memory.cache_clear()


def test_glibc_is_asked_once_to_keep_memory(monkeypatch):
    calls = []
    library = SimpleNamespace(mallopt=lambda *option: calls.append(option))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    keep_freed_memory()
    keep_freed_memory()
    assert calls == [(-3, KEPT), (-1, KEPT)]


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_another_c_library_is_left_alone(monkeypatch, error):
    monkeypatch.setattr(ctypes, "CDLL", Mock(side_effect=error))
    keep_freed_memory()
