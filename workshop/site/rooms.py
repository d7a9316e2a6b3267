"""Rooms and floors in docs/explanation/architecture.md: from import contracts and docstrings.

``python -m workshop.site.rooms`` writes them again.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGES = ("benchmark", "leaderboards", "tasks", "zoo", "mini")
BEGIN, END = "<!-- rooms -->\n", "<!-- end of rooms -->"


def floors() -> dict[str, list[list[str]]]:
    """By package, its floors from the highest to the lowest; each has names of folders and files.

    A layer in parentheses stands for all folders and files that no other layer names.
    """
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    by_package = {}
    for contract in contracts:
        for container in contract.get("containers", ()):
            if package := container.partition(".")[2]:
                named = {name for layer in contract["layers"] for name in layer.split(" | ")}
                files = {path.stem for path in (ROOT / package).glob("[!_]*.py")}
                folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
                others = sorted((files | folders) - named)
                by_package[package] = [
                    others if layer.startswith("(") else layer.split(" | ") for layer in contract["layers"]
                ]
    return by_package


def holds(path: Path) -> str:
    """What a folder or a file holds: the first sentence of its docstring, without what follows a colon."""
    module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("``", "").split(". ")[0].rstrip(".")


def _rooms(path: Path, depth: int = 0) -> Iterator[tuple[str, str]]:
    """A folder or file and what it holds, then the folders in it, indented."""
    name = f"{path.name}/" if path.is_dir() else f"{path.name}.py"
    yield "  " * depth + name, holds(path)
    for inner in sorted(path.glob("*/__init__.py")):
        yield from _rooms(inner.parent, depth + 1)


def rooms_text() -> str:
    """The picture of every package: floors from the highest, each with its rooms and what they hold."""
    parts = []
    for package, layers in sorted(floors().items(), key=lambda item: PACKAGES.index(item[0])):
        lines = []
        for number, layer in zip(range(len(layers), 0, -1), layers, strict=True):
            rooms = [room for name in layer for room in _rooms(ROOT / package / name)]
            starts = [f"{number:2d}", *["  "] * (len(rooms) - 1)]
            lines += [
                f"{start}  {name:<18} {sentence}"
                for start, (name, sentence) in zip(starts, rooms, strict=True)
            ]
        parts.append(f"**{package}**: {holds(ROOT / package)}.\n\n```\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def page_text() -> str:
    """The page with its rooms as they are."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{rooms_text()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
