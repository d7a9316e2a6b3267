"""The tutorials do what they say: each notebook is made from its page and executed in an empty folder."""

import os
import re
import sys
from itertools import chain
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests import fakes
from workshop.site.pages import DOCS, notebook


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered images and features of all tutorials."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, where the commands of this environment are found."""
    monkeypatch.setenv("LAYERBOARD_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("IPYTHONDIR", str(cache / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(cache / "jupyter"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    return tmp_path


def executed(name: str, folder: Path, run: str = "run") -> list[list[NotebookNode]]:
    """Execute the notebook of a page; gives the outputs of each cell. A command that fails ends it.

    ``run`` is what stands in place of that command.
    """
    text = (DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    made = nbformat.reads(notebook(text), as_version=4)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.source = cell.source.replace("!layerboard run ", f"!layerboard {run} ")
            cell.source = re.sub(r"^(!.*)$", r"\1\nassert _exit_code == 0", cell.source, flags=re.MULTILINE)
    NotebookClient(made, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in made.cells if cell.cell_type == "code"]


def execute(name: str, folder: Path, run: str = "run") -> str:
    """Execute the notebook of a page; gives all that its cells show."""
    shown = chain(*executed(name, folder, run))
    return "\n".join(output.get("text") or output.data["text/plain"] for output in shown)


def test_every_tutorial_is_run() -> None:
    assert {path.stem for path in (DOCS / "tutorials").glob("*.md")} == {
        "photos",
        "method",
        "notebook",
        "leaderboard",
    }


@pytest.mark.slow
def test_photos(folder: Path) -> None:
    made = fakes.write_fake_class_folders(folder / "photos", classes=2, images=14)
    for old, new in zip(sorted(made.iterdir()), ("cat", "dog"), strict=True):
        old.rename(made / new)
    next((made / "cat").iterdir()).rename(made / "cat" / "IMG_0001.jpg")
    shown = execute("photos", folder)
    assert "Loses at most: so many points below the true best" in shown
    assert 'layerboard.load("' in shown
    assert [*(folder / "results" / "report").glob("*.html")]


@pytest.mark.slow
def test_method(folder: Path) -> None:
    shown = execute("method", folder)
    assert "3 blocks" in shown
    assert [*(folder / "results" / "export").glob("*.tex")]
    assert [*folder.rglob("*.svg")]


@pytest.mark.slow
def test_notebook(folder: Path) -> None:
    """Every cell shows one thing, besides one output for how far a run is: no line of a bar stays."""
    cells = executed("notebook", folder)
    assert len(cells) >= 12
    for outputs in cells:
        streams = [output for output in outputs if output.output_type == "stream"]
        assert {output.name for output in streams} <= {"stdout"}  # what `from_module` has found
        assert len(streams) <= 1
        assert sum(output.output_type == "execute_result" for output in outputs) <= 1
        assert sum(output.output_type == "display_data" for output in outputs) <= 1
        assert "\r" not in str(outputs)
    results = [output.data for output in chain(*cells) if output.output_type == "execute_result"]
    pictures = [data["image/png"] for data in results if "image/png" in data]
    assert len(pictures) == 5
    assert min(map(len, pictures)) > 5000
    (page,) = (data["text/html"] for data in results if "<iframe" in data.get("text/html", ""))
    assert "mini-dino" in page
    assert (folder / "knn-panels.pdf").is_file()
    assert (folder / "results" / "run.log").read_text(encoding="utf-8").endswith("  ended\n")


@pytest.mark.slow
def test_leaderboard(folder: Path) -> None:
    shown = execute("leaderboard", folder, "run --limit 20")  # a whole suite takes a minute
    table = (folder / "results" / "tables" / "mini.md").read_text(encoding="utf-8")
    assert "mini-clip" in table
    assert "mini-dino" in table
    assert (folder / "results" / "report" / "mini.html").is_file()
    assert "published numbers" in shown
