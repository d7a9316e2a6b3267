"""Backbones, tasks, datasets, suites and protocols, without torch: `list`, `layerboard.list_backbones`."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict
from functools import partial
from math import inf
from textwrap import fill
from typing import Any, Literal

from layerboard.benchmark.commands.command import command, say, say_json
from layerboard.benchmark.commands.result import Result, rows_text, screen
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import ByName, Form, Option, Plain, called_with
from layerboard.benchmark.plan.facts import teachers
from layerboard.leaderboards.blocks.display import count_text
from layerboard.leaderboards.findings.facts import fits_licence
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError, counted, ensure, unknown
from layerboard.zoo.registry.find import all_specs, find
from layerboard.zoo.spec import FAMILIES, FINGERPRINTS, BackboneSpec
from layerboard.zoo.spec.seen import training_size

What = Literal["backbones", "tasks", "datasets", "suites", "protocols"]

Row = dict[str, object]  # cells by column title

TABLE = ("name", "family", "depth", "width", "parameters", "learned_from", "licence", "gated")
"""Fields of `facts` that the table of backbones shows."""

NONE = ("retrained", "heads", "original")  # fields whose absence is known


def families(value: object) -> tuple[str, ...]:
    """Families of backbones, in lower case."""
    words = parsers.names(value)
    lower = [family.lower() for family in FAMILIES]
    for word in words:
        if word.lower() not in lower:
            raise unknown("family", word, lower if word.islower() else FAMILIES)
    return tuple(word.lower() for word in words)


FILTERS: Mapping[str, Callable[[Any], Any]] = {  # parsers of `--where`
    "family": families,
    "supervision": parsers.text,
    "licence": parsers.text,
    "parameters": parsers.count,
}


class BackboneFilters(Form):
    """Options that select backbones."""

    where: ByName = Option(
        (),
        "Filters, NAME=VALUE. family: dino, clip, ... (several: dino,clip); supervision: words in the "
        "supervision or training data (texts, ImageNet-22k); licence: words in it (mit, cc-by-nc), or "
        "commercial, licences whose name permits commercial use; parameters: their maximum number (100M).",
        partial(parsers.of_names, kinds=FILTERS),
        keys=FILTERS,
        usual="all",
    )

    @property
    def select(self) -> tuple[BackboneSpec, ...]:
        """The backbones of the registry that pass all filters; raises InputError if none does."""
        names, most = self.where.get("family", ()), self.where.get("parameters", inf)
        supervision, licence = (self.where.get(name, "") for name in ("supervision", "licence"))
        specs = tuple(
            spec
            for spec in all_specs()
            if (not names or spec.family.lower() in names)
            and supervision.lower() in f"{teachers(spec)}; {spec.supervision}; {spec.data}".lower()
            and fits_licence(spec.licence, licence)
            and (spec.parameters or 0) <= most
        )
        ensure(specs, "No backbone of the registry passes all filters; leave one out.")
        return specs


class ListRequest(BackboneFilters, kw_only=False):
    """Options of `list`: what to list, filters of backbones, and the form of the output."""

    what: Plain[What] = Option(..., "What to list.")
    name: Plain[str | None] = Option(
        None, "Name, Hub id or directory, to show all that is known of it.", positional=True
    )
    _: KW_ONLY
    json: Plain[bool] = Option(False, "Print JSON, with every field.", only="command")

    def __post_init__(self) -> None:
        if self.where and (self.name is not None or self.what != "backbones"):
            raise InputError("Filters are for 'list backbones' without a name.")
        if self.name is not None and self.what != "backbones":
            raise InputError(f"Only backbones are shown by name; leave out {self.name!r}.")


@command("list", ListRequest)
def list_command(request: ListRequest) -> None:
    """List backbones, tasks, datasets, suites or protocols.

    With the name of a backbone, show all that is known of it: of one of the Hub or a directory that has no
    entry, what its configuration says.

    Example: `layerboard list backbones --where family=dino,clip parameters=100M`
    """
    if request.name is not None:
        known = facts(_named(request.name))
        if request.json:
            say_json(known)
            return
        for name, value in known.items():
            line = f"{name.replace('_', ' '):<16} {text_of(name, value)}"
            say(fill(line, screen(), subsequent_indent=" " * 17, break_long_words=False))
        return
    specs = request.select if request.what == "backbones" else ()
    if request.json:
        say_json([facts(spec) for spec in specs] or _rows(request.what))
        return
    rows = [brief(spec) for spec in specs] or _rows(request.what)
    say(rows_text([*rows[0]], [row.values() for row in rows]))
    if specs:
        say(f"{len(specs)} backbones; 'list backbones NAME' tells all of one; gated: accept its terms first")


@called_with(BackboneFilters)
def list_backbones(filters: BackboneFilters) -> Result:
    """List the backbones of the registry that pass all filters.

    Does what ``layerboard list backbones`` does, and does not import torch. ``frame`` has one row per
    backbone, with all that is known about it.

    Example:
        >>> import layerboard
        >>> found = layerboard.list_backbones(where={"family": "dino", "parameters": "30M"})
        >>> found.frame[["name", "depth", "licence"]].head(2)
                name  depth     licence
        0   dino-s16     12  Apache-2.0
        1    dino-s8     12  Apache-2.0
    """
    import pandas as pd

    specs = filters.select
    return Result(
        title=counted(len(specs), "backbones"),
        frame=pd.DataFrame([facts(spec) for spec in specs]),
        table=pd.DataFrame([brief(spec) for spec in specs]),
    )


def _rows(what: What) -> list[Row]:
    if what == "tasks":
        return [
            {"name": task.name, "what": task.title, "primary metric": task.metric, "standard data": task.data}
            for task in TASKS
        ]
    if what == "datasets":
        from layerboard.tasks.datasets.catalogue import DATASETS  # imports numpy

        return [
            {
                "name": entry.name,
                "group": entry.group,
                "roles": " ".join(entry.roles),
                **{
                    name: f"{count:,}" if isinstance(count := getattr(entry, name, None), int) else ""
                    for name in ("classes", "train", "val")
                },
                "files": entry.layout,
                "source": entry.source,
                "pinned": entry.revision or ("not known" if entry.source else ""),
            }
            for entry in DATASETS
        ]
    if what == "suites":
        from layerboard.benchmark.plan.suites import SUITES  # Datasets of the suites import numpy.

        return [
            {"name": suite.name, "what": suite.title, "backbones": " ".join(suite.backbones + suite.floors)}
            for suite in SUITES
        ]
    return [
        {
            "name": protocol.name,
            "tasks": " ".join(protocol.tasks or ("all",)),
            "what": protocol.title,
            "unlike its source": " ".join(protocol.unlike),
        }
        for protocol in PROTOCOLS
    ]


def _named(name: str) -> BackboneSpec:
    """The backbone of a name or repository of the registry, or else of a Hub id or directory."""
    known = [each for each in all_specs() if name in (each.name, each.repository)]
    return known[0] if known else find([name], parsers.default_cache())[0]


def brief(spec: BackboneSpec) -> Row:
    """The fields of the table, as text."""
    known = facts(spec)
    cells: Row = {name.replace("_", " "): text_of(name, known[name]) for name in TABLE}
    return cells | {"licence": spec.licence.partition(" (")[0]}


def facts(spec: BackboneSpec) -> Row:
    """All that is known about a backbone, by name: what the table, the print of one and JSON are made of."""
    return {
        **_attributes(spec, "name", "family", "supervision"),
        "learned_from": teachers(spec),
        "data": spec.data or None,
        "data_size": training_size(spec.data) or None,
        "seen": None if spec.seen is None else spec.seen.summary(),
        "seen_by": [] if spec.seen is None else list(spec.seen.sources),
        "retrained": None if spec.retrained is None else asdict(spec.retrained),
        **_attributes(spec, "trained", "parameters", "depth", "width", "heads"),
        "patch": spec.patch_size,
        "stages": [asdict(stage) for stage in spec.stages],
        "input_size": spec.input_size,
        "trained_size": spec.trained_size or None,
        "grids": [spec.input_size // stage.stride for stage in spec.stages],
        "layers": [str(layer) for layer in spec.layers],
        "prefix_tokens": spec.prefix_tokens,
        "class_token": spec.has_cls,
        "final_norm": spec.has_final,
        "mean": list(spec.mean),
        "std": list(spec.std),
        **_attributes(spec, "licence"),
        "licence_from": _licensors(spec),
        **_attributes(spec, "gated", "paper", "recipe", "code"),
        "checkpoint": spec.origin.name,
        **_attributes(spec, "repository", "original", "revision"),
        "file": {key: None if value == "" else value for key, value in asdict(spec.file).items()},
        "revision_policy": _revision_policy(spec),
        "fingerprint": (FINGERPRINTS / f"{spec.entry}.json").is_file(),
        "load": _how_to_load(spec),
    }


def _attributes(spec: BackboneSpec, *names: str) -> Row:
    """Attributes of a backbone by their names; None for an empty text."""
    values = {name: getattr(spec, name) for name in names}
    return {name: None if value == "" else value for name, value in values.items()}


def text_of(name: str, value: object) -> str:
    """A field of `facts` as text for people."""
    if value is None and name in NONE:
        return "none"
    if isinstance(value, dict):
        there = {key: each for key, each in value.items() if each not in ("", None)}
        return ", ".join(f"{key} {text_of(key, each)}" for key, each in there.items()) or "not known"
    if isinstance(value, list):
        return "; ".join(text_of(name, each) for each in value) or "not known"
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "parameters" and isinstance(value, int):
        return count_text(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _revision_policy(spec: BackboneSpec) -> str:
    if spec.origin.supply:
        return spec.origin.supply
    if not spec.repository:
        return "the digest of the file that is given"
    newest = "not pinned: the newest is taken when the backbone is loaded, and recorded"
    return f"pinned: {spec.revision}" if spec.revision else newest


def _licensors(spec: BackboneSpec) -> list[str]:
    """Who says under which licence weights are: their authors, and the owner of the repository."""
    if spec.origin.supply:
        return ["LICENSE of this package"]
    authors = [f"LICENSE of github.com/{spec.code}"] if spec.code else []
    return authors + ([f"card of huggingface.co/{spec.repository}"] if spec.repository else [])


def _how_to_load(spec: BackboneSpec) -> str:
    """The command that runs the backbone, after the steps that it needs first."""
    command = f"run --backbones {spec.name}"
    if not spec.repository:
        return f"fetch {spec.original}; {command} --weights {spec.name}=FILE"
    terms = f"accept the terms on huggingface.co/{spec.repository}, 'hf auth login'; "
    return f"{terms if spec.gated else ''}{command}"
