"""What a reader notices first: names of one meaning, variables that are nouns."""

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from tests import rooms

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmark", "leaderboards", "mini", "perf", "tasks", "workshop", "zoo")
VAGUE = ("one", "found", "of", "place", "told")
"""Names of variables that say nothing of what they hold."""

EXCEPTIONS = {
    "tasks/keypoints/matching.py": ("found",)  # points that were found, beside those that were sought
}
"""By file: where such a name is the noun."""


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Every file of the packages: its name, and what is written in it."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths
    ]


def test_no_two_public_classes_have_one_name() -> None:
    classes = defaultdict(list)
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{name}:{node.lineno}")
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}


def test_a_name_that_is_imported_means_one_thing() -> None:
    """A public function or class of a module that another file imports is defined in one file alone."""
    defined, imported = defaultdict(list), set()
    for name, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(f"{name}:{node.lineno}")
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        imported |= {each.name for node in nodes if _is_ours(node.module) for each in node.names}
    imported -= {"main", "find"}  # where a program starts; the command, and the function of the registry
    assert {name: defined[name] for name in sorted(imported) if len(defined[name]) > 1} == {}


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in ("layerboard", "perf", "workshop")


def test_variables_are_nouns() -> None:
    vague: Counter[str] = Counter()
    for name, tree in modules():
        for node in ast.walk(tree):
            bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id
            if bound in VAGUE and bound not in EXCEPTIONS.get(name, ()):
                vague[f"{name}: {bound}"] += 1
    assert vague == {}


def test_the_architecture_page_has_every_room() -> None:
    """``python -m tests.rooms`` writes them again."""
    assert rooms.PAGE.read_text(encoding="utf-8") == rooms.page_text()


def test_tests_stand_in_the_rooms_of_what_they_test() -> None:
    folders = {
        path.parent.relative_to(ROOT / "tests").as_posix()
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("*.py")
    }
    assert {folder for folder in folders if not (ROOT / folder).is_dir()} == {"tasks/agreement"}
