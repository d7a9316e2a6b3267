"""A real browser for pages, and what it complains of."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Tab = Any  # a page of playwright, which is not installed for every test


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The Chromium of the machine, without a window; tests that need it are skipped where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium on the path")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        own = {**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}  # it writes there
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], env=own)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def watch() -> Callable[[Tab], tuple[list[str], list[str]]]:
    """Keeps the addresses that a tab asks for from now on, and what it says in its console."""

    def watched(tab: Tab) -> tuple[list[str], list[str]]:
        asked: list[str] = []
        said: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        return asked, said

    return watched


@pytest.fixture
def serious() -> Callable[[Tab], list[str]]:
    """What axe finds that is serious; AXE names a copy of axe.min.js, which is no part of the repository."""
    axe = os.environ.get("AXE")
    if not axe:
        pytest.skip("AXE does not name axe.min.js")

    def found(tab: Tab) -> list[str]:
        tab.evaluate(Path(axe).read_text(encoding="utf-8"))
        violations = tab.evaluate("axe.run(document)")["violations"]
        return [each["id"] for each in violations if each["impact"] in ("serious", "critical")]

    return found
