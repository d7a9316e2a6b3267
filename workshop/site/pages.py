"""Lays out the pages of the site in build/docs, which ``.ci/site`` builds.

The pages of docs; those that forms and tables give (commands, functions, tasks, metrics); and the files of
the repository that a page links to, with every link set right.
"""

import html
import inspect
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from os.path import relpath, sep
from pathlib import Path
from typing import Any

import layerboard
from layerboard.benchmark.commands.app import COMMANDS
from layerboard.benchmark.commands.command import Command
from layerboard.benchmark.forms.option import Option, declared
from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.tasks.framework.registry import TASKS, TaskEntry
from layerboard.zoo.words import TASK_WORDS

ROOT = Path(__file__).parents[2]
DOCS, BUILT = ROOT / "docs", ROOT / "build" / "docs"
FUNCTIONS = [name for name in layerboard.__all__ if name not in ("InputError", "__version__")]
METRICS = sorted((ROOT / "tasks" / "metrics").glob("[a-z]*.py"))
LINK = re.compile(r"(\]\(|(?:src|href)=\")((?!https?:|mailto:|#)[^)#\s\"]+)((?:#[^)\s\"]*)?[)\"])")
FENCE = re.compile(r"^(```.*?^```$)", flags=re.DOTALL | re.MULTILINE)
PLACE = re.compile(r"^<!-- (functions|metrics|tasks|commands|datasets) -->$", flags=re.MULTILINE)
# Code and tables of numbers, which pages link to, are not what a search is for.
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"


def place_of(path: Path) -> Path:
    """Where a file of the repository stands among the pages; a folder or code stands on a page of its own."""
    inside = path.relative_to(DOCS) if path.is_relative_to(DOCS) else path.relative_to(ROOT)
    if path == ROOT / "README.md":
        inside = Path("index.md")
    return inside / "files.md" if path.is_dir() else Path(f"{inside}.md") if path.suffix == ".py" else inside


def linked(text: str, source: Path, place: Path, wanted: set[Path]) -> str:
    """A page's text with links as they are among the pages; adds the files that it links to."""

    def changed(found: re.Match[str]) -> str:
        target = (source.parent / found[2]).resolve()
        if not target.exists():
            raise SystemExit(f"{source.relative_to(ROOT)} links to {found[2]}, which is not there")
        wanted.add(target)
        return f"{found[1]}{relpath(place_of(target), place.parent).replace(sep, '/')}{found[3]}"

    parts = FENCE.split(text)  # what stands in a block of code is no link
    return "".join(part if part.startswith("```") else LINK.sub(changed, part) for part in parts)


def page_of(path: Path, wanted: set[Path]) -> str:
    """A file of the repository as a page."""
    if path.is_dir():
        names = sorted((*path.glob("*.md"), *path.glob("*.csv"), *path.glob("*/README.md")))
        wanted.update(names)
        links = "\n".join(f"- [{name.relative_to(path)}]({name.relative_to(path)})" for name in names)
        return f"# {path.relative_to(ROOT)}\n\n{links}\n"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return f"# {path.relative_to(ROOT)}\n\n```python\n{text}```\n"
    made = {
        "functions": functions,
        "metrics": metrics,
        "tasks": tasks,
        "commands": commands,
        "datasets": datasets,
    }
    text = PLACE.sub(lambda found: made[found[1]](), linked(text, path, place_of(path), wanted))
    tutorial = path.parent.name == "tutorials"
    return f"{text}\n[This page as a notebook]({path.stem}.ipynb)\n" if tutorial else text


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def literal(text: str) -> str:
    """Plain words as Markdown: nothing in them is a tag or an emphasis."""
    return re.sub(r"([<>*\[\]_])", r"\\\1", text)


def default_of(option: Option[Any, Any]) -> str:
    """The default of an option in words."""
    value = option.default
    if option.usual or value in (None, ()):
        return literal(option.usual)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{' '.join(map(str, value)) if isinstance(value, tuple) else value}`"


def options(command: Command[..., Any]) -> str:
    """The options of a command, group by group."""
    rows: dict[str, list[list[str]]] = {}
    for option in declared(command.form):
        name = option.name.upper() if option.positional else option.flag
        names = ", ".join(f"`{each}`" for each in (name, *option.also.split()))
        names += " (needed)" if option.default is ... else ""
        words = literal(option.help) + (" Several may follow." if option.several else "")
        words += f" One of {', '.join(f'`{choice}`' for choice in option.choices)}." if option.choices else ""
        default = "" if option.default is ... else default_of(option)
        rows.setdefault(option.panel or "Options", []).append([names, words, default])
    return "\n\n".join(f"## {panel}\n\n{table(OPTION, each)}" for panel, each in rows.items())


OPTION = ("option", "what it says", "default")


def command_page(command: Command[..., Any]) -> str:
    """The page of a command: its help and every option."""
    said = re.sub(r"Example: `(.*)`", r"```bash\n\1\n```", command.help)
    said = re.sub(r"^(?! *[-*] )(\S.*)\n(?= *[-*] )", r"\1\n\n", said, flags=re.MULTILINE)  # or it is no list
    return f"# layerboard {command.name}\n\n{said}\n\n{options(command)}\n"


def page_file(command: Command[..., Any]) -> str:
    """The name of a command's page."""
    return f"{command.name.replace(' ', '-')}.md"


def commands() -> str:
    """The list of all commands."""
    firsts = [each.help.split("\n\n")[0] for each in COMMANDS]
    rows = [
        [f"[`layerboard {each.name}`]({page_file(each)})", " ".join(first.split())]
        for each, first in zip(COMMANDS, firsts, strict=True)
    ]
    return table(("command", "what it does"), rows)


def functions() -> str:
    """All public functions and classes, as their documentation has them."""
    return "\n\n".join(map(function, FUNCTIONS))


def function(name: str) -> str:
    """A public function or class: how it is called, its documentation, and a table of its options."""
    called = getattr(layerboard, name)
    signature = inspect.signature(called)
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    call = f"layerboard.{name}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"
    said, _, listed = (inspect.getdoc(called) or "").partition("\n\nOptions:\n")
    said = said.replace("\n\nRaises:\n    layerboard.InputError:", "\n\nRaises `layerboard.InputError`:")
    said = re.sub(
        r"^Example:\n((?: {4}.*\n?|\n)+)",
        lambda found: f"```pycon\n{textwrap.dedent(found[1]).rstrip()}\n```\n\n",
        said.replace("``", "`").replace("<BLANKLINE>", ""),
        flags=re.MULTILINE,
    )
    told_of = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", listed, flags=re.MULTILINE)
    rows = [[f"`{option}`", literal(" ".join(words.split()))] for option, words in told_of]
    shown = textwrap.fill(call, 84, subsequent_indent=" " * 4, break_long_words=False)
    return f"## {name}\n\n```python\n{shown}\n```\n\n{said}\n\n{table(('option', 'what it says'), rows)}"


def tasks() -> str:
    """The tasks and the analyses: what each asks, its metrics and its data."""
    parts = []
    for analysis, title in ((False, "Tasks"), (True, "Analyses")):
        parts += [f"## {title}", *(task(each) for each in TASKS if each.analysis is analysis)]
    return "\n\n".join(parts)


def datasets() -> str:
    """The datasets: the files of each, and the tasks of its role."""
    rows = []
    for entry in DATASETS:
        names = [f"`{each.name}`" for each in TASKS if each.role in entry.roles and not each.analysis]
        rows.append((f"`{entry.name}`", f"`{entry.layout}`", ", ".join(names)))
    return table(("dataset", "files", "tasks"), rows)


def task(entry: TaskEntry) -> str:
    """One task."""
    others = [f"`{name}`" for name in entry.metrics[1:]]
    defined = f"### {entry.name}\n" in (DOCS / "explanation" / "analyses.md").read_text(encoding="utf-8")
    page = f"analyses.md#{entry.name}" if defined else "protocols.md" if not entry.analysis else ""
    pages = {"segment": "segmentation.md", "anomaly": "anomaly.md", "instances": "instances.md"}
    page = (pages | dict.fromkeys(("regress", "multilabel"), "targets.md")).get(entry.name, page)
    lines = [
        f"**{entry.title}**: {literal(entry.asks)}",
        f"- Primary metric: {literal(entry.measures)}.",
        f"- Further metrics: {', '.join(others)}." * bool(others),
        f"- Data: {entry.data}." * bool(entry.data),
        f"- Runs only where it is named: `--tasks {entry.name}`." * (not entry.default),
        f"- [How it is measured](../explanation/{page})." * bool(page),
    ]
    return f"### {entry.name}\n\n{lines[0]}\n\n" + "\n".join(filter(None, lines[1:]))


def metrics() -> str:
    """The modules of metrics, for mkdocstrings."""
    return "\n\n".join(f"::: layerboard.tasks.metrics.{path.stem}" for path in METRICS)


def notebook(text: str) -> str:
    """A tutorial as a notebook: its blocks of Python and of commands are cells that run."""
    cells: list[dict[str, Any]] = []
    for index, part in enumerate(FENCE.split(text)):
        block = re.fullmatch(r"```(bash|python)\n(.*?)\n?```", part, flags=re.DOTALL)
        if block:
            code = block[2] if block[1] == "python" else re.sub(r"^", "!", block[2], flags=re.MULTILINE)
            run: dict[str, Any] = {
                "cell_type": "code",
                "execution_count": None,
                "outputs": [],
                "source": code,
            }
            cells.append({"id": f"cell-{index}", "metadata": {}, **run})
        elif part.strip():
            cells.append(
                {"id": f"cell-{index}", "metadata": {}, "cell_type": "markdown", "source": part.strip()}
            )
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def pages() -> Iterator[tuple[Path, str | Path]]:
    """Where each page or file stands, and its text, or the file to copy."""
    wanted = {path for path in DOCS.rglob("*") if path.is_file()} | {
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
    }
    done: set[Path] = set()
    while left := sorted(wanted - done):
        for path in left:
            done.add(path)
            page = path.is_dir() or path.suffix in (".md", ".py")
            content = page_of(path, wanted) if page and path != ROOT / "README.md" else path
            searched = path.is_relative_to(DOCS) or path.parent == ROOT or not page
            yield place_of(path), content if searched else f"{UNSEARCHED}{content}"
    for path in sorted((DOCS / "tutorials").glob("*.md")):
        yield place_of(path).with_suffix(".ipynb"), notebook(path.read_text(encoding="utf-8"))
    folder = Path("reference/commands")
    yield from ((folder / page_file(each), command_page(each)) for each in COMMANDS)
    rows = "".join(f"- [{each.name}]({page_file(each)})\n" for each in COMMANDS)
    yield folder / "SUMMARY.md", f"- [All commands](index.md)\n{rows}"


def lay_out() -> None:
    """Write all pages anew."""
    shutil.rmtree(BUILT, ignore_errors=True)
    for address, content in pages():
        path = BUILT / address
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif content != ROOT / "README.md":
            shutil.copyfile(content, path)


def arranged(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of a search: what visitors use comes first, and is found under other words for it, too.

    Code stands behind pages: of a module of metrics or a class there is one entry without a title of its own,
    with the names of all that is in it.
    """
    public: list[dict[str, Any]] = []
    code: dict[str, dict[str, Any]] = {}  # by the place of the module or class
    for item in items:
        page, _, anchor = item["location"].partition("#")
        if page not in CODE or not anchor.startswith("layerboard."):
            words = also_called(item)
            public.append(item | {"text": f"{item['text']}<p>{words}</p>" if words else item["text"]})
        elif above := next((each for each in code if item["location"].startswith(f"{each}.")), ""):
            code[above]["text"] += f" {item['title']}"
        else:
            name = re.sub("<.*", "", item["title"]).strip()
            text = f"<p><code>{name}</code></p> {item['text']}"
            code[item["location"]] = item | {"title": CODE[page], "text": text}
    return [*public, *code.values()]


# Pages of code, and the title under which a search shows their modules and classes.
CODE = {"reference/metrics.html": "Metrics in code", "reference/classes.html": "Classes in code"}
# Spellings, and words beside those of a page, by words that it has.
SPELLINGS = {
    "licence": "license",
    "colour": "color",
    "normalis": "normalize normalization",
    "neighbour": "neighbor neighborhood",
    "centre": "center",
    "grey": "gray",
    "behaviour": "behavior",
    "visualis": "visualize visualization",
    "analys": "analyze",
    "quantis": "quantize quantization",
}
KEYWORDS = {
    "how-to/look.html": "attention map, attention maps, heatmap, heat map, rollout, visualize, visualise, "
    "feature map, feature visualization, PCA",
    "how-to/curation.html": "reverse image search, similar images, near-duplicates, dedup, deduplicate, "
    "label errors, noisy labels, data cleaning, cleanlab, imagededup, faiss",
    "reference/commands/look.html": "attention map, attention maps, heatmap, visualize, visualise, PCA",
    "how-to/own_images.html": "custom dataset, my own dataset, folder of photos, ImageFolder",
    "how-to/own_backbones.html": "custom model, my own model, checkpoint, timm, Hugging Face, ONNX",
    "how-to/cost.html": "latency, speed, throughput, FLOPs, memory, fastest, nearest neighbor search, faiss",
    "how-to/poolings.html": "average pooling, global pooling, GeM, concatenate, normalize, LayerNorm, "
    "intermediate features, get_intermediate_layers",
    "how-to/sets.html": "which layers, four layers, multi-layer, concatenate, DPT, dense head, out_indices, "
    "forward selection, greedy",
    "how-to/compress.html": "quantization, quantize, dimensionality reduction, PCA, product quantization",
    "how-to/scale.html": "multi-GPU, distributed, SLURM, Ray, out of memory",
    "start.html": "install, pip install, quickstart, getting started, requirements",
    "explanation/statistics.html": "significance, p-value, confidence interval, error bars, bootstrap",
    "reference/python.html": "API",
    "reference/backbones.html": "models, pretrained models, model zoo, licenses, license",
}


def also_called(item: dict[str, Any]) -> str:
    """Further words for what an entry of the search speaks of."""
    page, _, anchor = item["location"].partition("#")
    text = f"{item['title']} {item['text']}".lower()
    words = [other for spelling, other in SPELLINGS.items() if spelling in text]
    words += [KEYWORDS[page]] if page in KEYWORDS and not anchor else []
    if page == "reference/tasks.html":
        words += [FIELD.get(word, word) for word, names in TASK_WORDS.items() if item["title"] in names]
    return ", ".join(words)


# Stems of words for tasks (`zoo.words`) whose usual forms are other than the stem.
FIELD = {
    "classif": "classification",
    "prob": "probing, linear probe",
    "segment": "segmentation, semantic segmentation",
    "detect": "detection",
    "ood": "out of distribution",
    "duplicate": "duplicates, near-duplicates",
    "dedup": "deduplication, dedup",
    "similar": "similarity",
    "track": "tracking",
    "keypoint": "keypoint matching",
    "correspond": "semantic correspondence",
    "cluster": "clustering",
}


def check_search(items: Iterable[dict[str, Any]]) -> None:
    """A search finds every command, function, task and metric under its name; else SystemExit says which."""
    entries = {(item["location"].partition("#")[0], item["title"]) for item in items}
    folder = "reference/commands"
    names = {(f"{folder}/{Path(page_file(each)).stem}.html", f"layerboard {each.name}") for each in COMMANDS}
    names |= {("reference/python.html", name) for name in FUNCTIONS}
    names |= {("reference/tasks.html", task.name) for task in TASKS}
    code = "".join(item["text"] for item in items if "reference/metrics.html#" in item["location"])
    modules = {path.stem for path in METRICS if f"<code>{path.stem}</code>" not in code}
    described = "".join(item["text"] for item in items if "reference/tasks.html#" in item["location"])
    metrics = {name for task in TASKS for name in task.metrics if html.escape(name) not in described}
    if missing := sorted(map(str, [*(names - entries), *modules, *metrics])):
        raise SystemExit(f"a search does not find {', '.join(missing)}")


def check_links() -> None:
    """No link of a built page is without words, which a screen reader would read by its address."""
    pages = sorted((ROOT / "build" / "site").rglob("*.html"))
    empty = [page for page in pages if re.search(r'<a [^>]*href="[^"]*"[^>]*></a>', page.read_text("utf-8"))]
    if empty:
        raise SystemExit(f"links without words are in {', '.join(page.name for page in empty)}")


def check_built() -> None:
    """Arrange the search of the built site, and check it and the links."""
    path = ROOT / "build" / "site" / "search.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["items"] = arranged(index["items"])
    path.write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")
    check_search(index["items"])
    check_links()


if __name__ == "__main__":
    check_built() if sys.argv[1:] == ["--built"] else lay_out()
