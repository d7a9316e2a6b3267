"""The site: every command, function, task and metric has its place, and commands on pages can be typed."""

import inspect
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import layerboard
from layerboard.benchmark.commands.app import COMMANDS, command_line, repeat_options
from layerboard.tasks.framework.registry import TASKS
from workshop.site.pages import DOCS, ROOT, arranged, pages

CALL = re.compile(r"^ *(layerboard .*)", flags=re.MULTILINE)
BLOCK = re.compile(r"^```bash\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def laid_out() -> dict[str, str]:
    """The texts of all pages by their place; a link to what is not there ends it."""
    found = list(pages())
    assert len({place for place, _ in found}) == len(found)
    return {place.as_posix(): text if isinstance(text, str) else "" for place, text in found}


def test_every_command_has_a_page_with_every_option(laid_out: dict[str, str]) -> None:
    everything = command_line()
    for each in COMMANDS:
        command = everything
        for word in each.name.split():
            command = command.commands[word]
        page = laid_out[f"reference/commands/{each.name.replace(' ', '-')}.md"]
        flags = [name for one in command.params for name in one.opts if name.startswith("-")]
        assert [name for name in flags if f"`{name}`" not in page and name != "--help"] == []
        assert f"]({each.name.replace(' ', '-')}.md)" in laid_out["reference/commands/SUMMARY.md"]
        assert re.search(r"^[^-\s].*\n- ", page, re.MULTILINE) is None  # a list begins behind an empty line


def test_functions_tasks_and_metrics_have_their_places(laid_out: dict[str, str]) -> None:
    names = [name for name in layerboard.__all__ if name not in ("InputError", "__version__")]
    page = laid_out["reference/python.md"]
    for name in names:
        assert f"\n## {name}\n" in page
        for option in inspect.signature(getattr(layerboard, name)).parameters:
            assert f"| `{option}` |" in page
    assert all(f"\n### {task.name}\n" in laid_out["reference/tasks.md"] for task in TASKS)
    modules = {path.stem for path in (ROOT / "tasks" / "metrics").glob("[a-z]*.py")}
    named = set(
        re.findall(r"^::: layerboard\.tasks\.metrics\.(\w+)$", laid_out["reference/metrics.md"], re.M)
    )
    assert named == modules


def test_the_menu_has_every_page_of_docs(laid_out: dict[str, str]) -> None:
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")

    def places(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [
            place for each in (entry.values() if isinstance(entry, dict) else entry) for place in places(each)
        ]

    named = places(tomllib.loads(settings)["project"]["nav"])
    assert [place for place in named if not place.endswith("/") and place not in laid_out] == []
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert written - set(named) == {"reference/commands/index.md"}


@pytest.mark.parametrize(
    "path", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=lambda path: Path(path).stem
)
def test_commands_on_pages_can_be_typed(path: Path) -> None:
    """They are commands, with options that there are, and none is left without what it needs."""
    text = path.read_text(encoding="utf-8")
    blocks = (block.replace("\\\n", " ") for block in BLOCK.findall(text))
    for call in (found for block in blocks for found in CALL.findall(block)):
        words = shlex.split(call, comments=True)[1:]
        command = command_line()
        arguments = repeat_options(words)
        while arguments and arguments[0] in getattr(command, "commands", {}):
            command = command.commands[arguments.pop(0)]
        assert not hasattr(command, "commands") or words == ["COMMAND", "--help"], call
        command.make_context("layerboard", arguments, resilient_parsing=False)


def test_tutorials_are_notebooks_of_the_same_steps(laid_out: dict[str, str]) -> None:
    for name in ("photos", "method", "notebook", "leaderboard"):
        cells = json.loads(laid_out[f"tutorials/{name}.ipynb"])["cells"]
        code = [cell["source"].replace("!layer", "layer") for cell in cells if cell["cell_type"] == "code"]
        text = (DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
        assert code == [block for _, block in re.findall(r"^```(bash|python)\n(.*?)\n```", text, re.M | re.S)]
        assert f"]({name}.ipynb)" in laid_out[f"tutorials/{name}.md"]


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150


def test_a_search_finds_public_pages_first_and_under_other_words() -> None:
    metrics = "reference/metrics.html#layerboard.tasks.metrics.near_duplicates"
    places = [
        (metrics, "near_duplicates"),
        (f"{metrics}.near_duplicate_pairs", "near_duplicate_pairs"),
        ("reference/tasks.html#instances", "instances"),
        ("reference/commands/list.html", "layerboard list"),
        ("how-to/look.html", "Look at your pictures"),
    ]
    items = [{"location": place, "title": title, "text": "<p>a licence</p>"} for place, title in places]
    found = arranged(items)
    assert [item["location"] for item in found] == [place for place, _ in places[2:]] + [metrics]
    task, command, look, module = (item["text"] for item in found)
    assert "deduplication" in task
    assert command == "<p>a licence</p><p>license</p>"
    assert "attention map" in look
    assert (found[-1]["title"], "near_duplicates" in module, "near_duplicate_pairs" in module) == (
        "Metrics in code",
        True,
        True,
    )
