"""The tutorials do what they say: each is run from its own text, in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest

from tests import fakes
from tests.benchmark.runs import command

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
CALL = "layerboard "

Capture = pytest.CaptureFixture[str]


def steps(name: str) -> list[tuple[str, str]]:
    """The blocks of a page that are in a language, in order."""
    text = (TUTORIALS / f"{name}.md").read_text()
    return re.findall(r"^```(bash|python)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def follow(capsys: Capture, name: str) -> str:
    """Do what a page says; gives all that was printed."""
    names: dict[str, object] = {}
    said = []
    for language, block in steps(name):
        if language == "python":
            exec(compile(block, f"{name}.md", "exec"), names)
            said.append(capsys.readouterr().out)
            continue
        for line in block.splitlines():
            assert line.startswith(CALL), line
            done = command(capsys, *shlex.split(line.removeprefix(CALL)))
            assert done.code == 0, (line, done.err)
            said.append(done.out)
    return "\n".join(said)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_tutorial_is_run() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.md")} == {"photos", "method", "leaderboard"}


@pytest.mark.slow
def test_photos(capsys: Capture, folder: Path) -> None:
    made = fakes.write_fake_class_folders(folder / "photos", classes=2, images=14)
    for old, new in zip(sorted(made.iterdir()), ("cat", "dog"), strict=True):
        old.rename(made / new)
    next((made / "cat").iterdir()).rename(made / "cat" / "IMG_0001.jpg")
    said = follow(capsys, "photos")
    assert "tied with the best" in said
    assert 'layerboard.load("' in said
    assert [*(folder / "results" / "report").glob("*.html")]


@pytest.mark.slow
def test_method(capsys: Capture, folder: Path) -> None:
    said = follow(capsys, "method")
    assert "3 blocks" in said
    assert [*(folder / "results" / "export").glob("*.tex")]
    assert [*folder.rglob("*.svg")]


@pytest.mark.slow
def test_leaderboard(capsys: Capture, folder: Path) -> None:
    said = follow(capsys, "leaderboard")
    assert "mini-clip" in (folder / "results" / "tables" / "mini.md").read_text()
    assert "mini-dino" in (folder / "results" / "tables" / "mini.md").read_text()
    assert (folder / "site" / "index.html").is_file()
    assert "published numbers" in said
