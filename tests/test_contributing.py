"""The recipes name files, tables and functions that are there."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import layerboard

ROOT = Path(__file__).parents[1]
PARTS = ("benchmark", "docs", "leaderboards", "mini", "tasks", "tests", "workshop", "zoo")
RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "docs/explanation/architecture.md"])
def test_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    folder = (ROOT / page).parent
    named = [name for name in re.findall(r"`([\w.-]+(?:/[\w.-]*)+)`", text) if name.split("/")[0] in PARTS]
    assert named or page != "CONTRIBUTING.md"
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [name for name in links if not (folder / name).exists()] == []
    assert re.findall(r"`\w+\.py`", text) == []  # a file is named with its folder


def test_modules_that_are_called_are_there() -> None:
    names = re.findall(r"python -m ((?:tests|mini|workshop|benchmark)[\w.]*)", RECIPES)
    files = [(ROOT / name.replace(".", "/")) for name in names]
    assert names
    assert [file for file in files if not (file.with_suffix(".py").exists() or file.is_dir())] == []


def test_names_that_stand_in_code_are_there() -> None:
    files = (file for part in PARTS for file in (ROOT / part).rglob("*") if file.suffix in (".py", ".js"))
    sources = (file for file in files if file != Path(__file__))
    words = set(re.findall(r"\w+", " ".join(file.read_text(encoding="utf-8") for file in sources)))
    names = re.findall(r"`@?([A-Za-z_]\w*(?:\.\w+)*)(?:[(=][^`]*)?`", RECIPES)
    unknown = {part for name in names for part in name.split(".")} - words
    assert unknown == set()


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"] == layerboard.__version__
    assert citation["license"] == project["license"]
    assert {"cff-version", "message", "title", "authors"} <= {*citation}
    assert all("name" in author or "family-names" in author for author in citation["authors"])
