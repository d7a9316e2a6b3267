"""What a reader notices first: the size of the house, names of one meaning, variables that are nouns."""

import ast
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from layerboard.benchmark.commands.app import COMMANDS
from layerboard.benchmark.forms.option import declared
from workshop.site import rooms

# Only the owner raises these.
BUDGETS = {
    "lines of the product": 60_000,
    "lines of its code": 37_500,
    "lines of tests": 60_000,
    "options of all commands": 133,
    "commands": 15,
}
STILL = {"lines of the product": 60_267}
"""What is above its budget today: these fall, and go at the budget."""

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmark", "leaderboards", "mini", "tasks", "workshop", "zoo")
VAGUE = ("one", "found", "of", "place", "told")
"""Names of variables that say nothing of what they hold."""

EXCEPTIONS = {
    "tasks/keypoints/matching.py": ("found",)  # points that were found, beside those that were sought
}
"""By file: where such a name is the noun."""


@dataclass(frozen=True)
class Module:
    """A file of the packages: its name, and every node of what is written in it, those of its body first."""

    name: str
    body: list[ast.stmt]
    nodes: list[ast.AST]


@cache
def modules() -> list[Module]:
    """Every file of the packages; to walk through all takes as long as to read them, and is done once."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    return [
        Module(path.relative_to(ROOT).as_posix(), tree.body, [*ast.walk(tree)])
        for path, tree in trees.items()
    ]


def code_lines(text: str) -> int:
    """Lines that are not blank, and no comment, docstring or import."""
    nodes = ast.walk(ast.parse(text))
    left_out = {
        line
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and place not in left_out for place, line in lines)


def test_the_house_is_within_its_budgets() -> None:
    """The product is what is installed, with the files that install it: neither tests nor the workshop."""
    folders = ("layerboard", *(package for package in PACKAGES if package != "workshop"))
    files = [ROOT / "setup.py", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    product = [path.read_text(encoding="utf-8") for path in files]
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    sizes = {
        "lines of the product": sum(len(text.splitlines()) for text in product),
        "lines of its code": sum(map(code_lines, product)),
        "lines of tests": sum(len(text.splitlines()) for text in tests),
        "options of all commands": sum(len(declared(each.form)) for each in COMMANDS),
        "commands": len({each.name.partition(" ")[0] for each in COMMANDS}),
    }
    assert {what: size for what, size in sizes.items() if size > (BUDGETS | STILL)[what]} == {}, sizes


def test_no_two_public_classes_have_one_name() -> None:
    classes = defaultdict(list)
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{module.name}:{node.lineno}")
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}


def test_a_name_that_is_imported_means_one_thing() -> None:
    """A public function or class of a module that another file imports is defined in one file alone."""
    defined, imported = defaultdict(list), set()
    for module in modules():
        for node in module.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(f"{module.name}:{node.lineno}")
        nodes = [node for node in module.nodes if isinstance(node, ast.ImportFrom)]
        imported |= {each.name for node in nodes if _is_ours(node.module) for each in node.names}
    imported -= {"main"}  # where a program starts
    assert {name: defined[name] for name in sorted(imported) if len(defined[name]) > 1} == {}


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in ("layerboard", "workshop")


def test_variables_are_nouns() -> None:
    vague: Counter[str] = Counter()
    for module in modules():
        for node in module.nodes:
            bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id
            if bound in VAGUE and bound not in EXCEPTIONS.get(module.name, ()):
                vague[f"{module.name}: {bound}"] += 1
    assert vague == {}


def test_the_architecture_page_has_every_room() -> None:
    """``python -m workshop.site.rooms`` writes them again."""
    assert rooms.PAGE.read_text(encoding="utf-8") == rooms.page_text()


def test_tests_stand_in_the_rooms_of_what_they_test() -> None:
    folders = {
        path.parent.relative_to(ROOT / "tests").as_posix()
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("*.py")
    }
    assert {folder for folder in folders if not (ROOT / folder).is_dir()} == {"tasks/agreement"}
