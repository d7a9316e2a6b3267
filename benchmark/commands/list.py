"""Backbones, tasks, datasets, suites and protocols, without torch: `list`, `layerboard.list_backbones`."""

from dataclasses import KW_ONLY, asdict, fields
from pathlib import Path
from textwrap import fill
from typing import Literal

from layerboard.benchmark.commands.command import command, say, say_json
from layerboard.benchmark.commands.result import Result, rows_text, screen
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, Option, Plain, Words, called_with
from layerboard.benchmark.plan.facts import teachers
from layerboard.leaderboards.blocks.display import count_text
from layerboard.leaderboards.findings.facts import fits_licence
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError, counted, unknown
from layerboard.zoo.registry.find import all_specs, find, require_named
from layerboard.zoo.spec import FAMILIES, BackboneSpec
from layerboard.zoo.spec.seen import training_size
from layerboard.zoo.spec.weights import FINGERPRINTS

What = Literal["backbones", "tasks", "datasets", "suites", "protocols"]

WANTED = (  # by an entry
    *("family", "supervision", "revision", "data", "licence", "paper", "recipe", "code", "parameters"),
)

_UNKNOWN = "not known"
_TODO = "...,  # to be filled in"  # by an entry's author
Row = dict[str, object]  # cells by column title


def families(value: object) -> tuple[str, ...]:
    """Families of backbones, in lower case."""
    words = parsers.names(value)
    lower = [family.lower() for family in FAMILIES]
    for word in words:
        if word.lower() not in lower:
            raise unknown("family", word, lower if word.islower() else FAMILIES)
    return tuple(word.lower() for word in words)


class BackboneFilters(Form):
    """Options that select backbones."""

    family: Words = Option((), "Families of backbones (dino, clip, dinov2, ...).", families, usual="all")
    supervision: Plain[str | None] = Option(
        None, "Words in the supervision or training data: texts, ImageNet-22k, ...", usual="any"
    )
    licence: Plain[str | None] = Option(
        None,
        "Words in the licence: mit, cc-by-nc, ...; commercial: licences whose name permits commercial use.",
        usual="any",
    )
    max_parameters: Option[str | int | None, int | None] = Option(
        None, "Maximum number of parameters, such as 100M or 1.2G.", parsers.count, usual="any number"
    )
    gated: Plain[bool | None] = Option(
        None, "Only backbones whose terms must be accepted, or only the others.", usual="both"
    )

    @property
    def select(self) -> tuple[BackboneSpec, ...]:
        """The backbones of the registry that pass all filters; raises InputError if none does."""
        specs = tuple(
            spec
            for spec in all_specs()
            if (not self.family or spec.family.lower() in self.family)
            and (self.supervision or "").lower()
            in f"{teachers(spec)}; {spec.supervision}; {spec.data}".lower()
            and fits_licence(spec.licence, self.licence or "")
            and (self.max_parameters is None or (spec.parameters or 0) <= self.max_parameters)
            and self.gated in (None, spec.gated)
        )
        if not specs:
            raise InputError("No backbone of the registry passes all filters; leave one out.")
        return specs


class ListRequest(BackboneFilters, kw_only=False):
    """Options of `list`: what to list, filters of backbones, and the form of the output."""

    what: Plain[What] = Option(..., "What to list.")
    name: Plain[str | None] = Option(None, "Name or Hub id, to show its full entry.", positional=True)
    _: KW_ONLY
    entry: Plain[bool] = Option(False, "Print a registry entry, as Python code, for any Hub id or directory.")
    json: Plain[bool] = Option(False, "Print JSON, with every field.")

    def __post_init__(self) -> None:
        filtered = any(getattr(self, each.name) not in ((), None) for each in fields(BackboneFilters))
        if filtered and (self.name is not None or self.what != "backbones"):
            raise InputError("Filters are for 'list backbones' without a name.")
        if self.name is not None and self.what != "backbones":
            raise InputError(f"Only backbones are shown by name; leave out {self.name!r}.")
        if self.entry and (self.name is None or self.json):
            raise InputError("--entry needs 'list backbones NAME', without --json.")


@command("list", ListRequest)
def list_command(request: ListRequest) -> None:
    """List backbones, tasks, datasets, suites or protocols.

    With the name of a backbone, show its full entry.

    Example: `layerboard list backbones --family dino clip --max-parameters 100M`
    """
    if request.entry:
        (spec,) = find([str(request.name)], parsers.default_cache())
        say(stub(spec))
        return
    if request.name is not None:
        named = [each for each in all_specs() if request.name in (each.name, each.repository)]
        if not named:
            require_named(request.name)
            raise InputError(
                f"{request.name} is no repository of the registry; 'run --backbones {request.name}' reads "
                "what it is from its configuration, and --entry prints an entry for it."
            )
        if request.json:
            say_json(facts(named[0]))
            return
        for title, value in details(named[0]).items():
            say(fill(f"{title:<14} {value}", screen(), subsequent_indent=" " * 15, break_long_words=False))
        return
    specs = request.select if request.what == "backbones" else ()
    if request.json:
        say_json([facts(spec) for spec in specs] or _rows(request.what))
        return
    rows = [brief(spec) for spec in specs] or _rows(request.what)
    say(rows_text([*rows[0]], [row.values() for row in rows]))
    if specs:
        star = "; * gated: its terms must be accepted first" if any(spec.gated for spec in specs) else ""
        say(f"{len(specs)} backbones; 'list backbones NAME' tells all of one{star}")


@called_with(BackboneFilters)
def list_backbones(filters: BackboneFilters) -> Result:
    """List the backbones of the registry that pass all filters.

    Does what ``layerboard list backbones`` does, and does not import torch. ``frame`` has one row per
    backbone, with all that is known about it.

    Example:
        >>> import layerboard
        >>> found = layerboard.list_backbones(family="dino", max_parameters="30M")
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
                **{count: _count(getattr(entry, count, None)) for count in ("classes", "train", "val")},
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


def _count(number: object) -> str:
    """An official number of images or classes; "" where the entry has none."""
    return f"{number:,}" if isinstance(number, int) else ""


def brief(spec: BackboneSpec) -> Row:
    """A short row for the table; a star marks a licence whose terms must be accepted."""
    return {
        "name": spec.name,
        "family": spec.family,
        "blocks": f"{spec.depth}x{spec.width}",
        "weights": count_text(spec.parameters) or "unknown",
        "learned from": teachers(spec),
        "licence": spec.licence.partition(" (")[0] + (" *" if spec.gated else ""),
    }


def facts(spec: BackboneSpec) -> Row:
    """All that is known about a backbone, for JSON."""
    from layerboard.tasks.datasets.catalogue import DATASETS  # imports numpy

    return {
        **_attributes(spec, "name", "family", "supervision", "data"),
        "data_size": training_size(spec.data) or None,
        "seen": None if spec.seen is None else {entry.name: spec.seen.mark(entry.name) for entry in DATASETS},
        "seen_by": [] if spec.seen is None else list(spec.seen.sources),
        "retrained": None if spec.retrained is None else asdict(spec.retrained),
        **_attributes(spec, "trained", "parameters", "depth", "width", "heads"),
        "patch": spec.patch_size,
        "stages": [asdict(stage) for stage in spec.stages],
        "input_size": spec.input_size,
        "grids": [spec.input_size // stage.stride for stage in spec.stages],
        "layers": [str(layer) for layer in spec.layers],
        "prefix_tokens": spec.prefix_tokens,
        "class_token": spec.has_cls,
        "final_norm": spec.has_final,
        "mean": list(spec.mean),
        "std": list(spec.std),
        **_attributes(spec, "licence", "gated", "paper", "recipe", "code"),
        "checkpoint": spec.origin.name,
        **_attributes(spec, "repository", "original", "revision"),
        "file": {key: None if value == "" else value for key, value in asdict(spec.file).items()},
        "revision_policy": _revision_policy(spec),
        "fingerprint": _has_fingerprint(spec),
        "load": _how_to_load(spec),
    }


def _attributes(spec: BackboneSpec, *names: str) -> Row:
    """Attributes of a backbone by their names; None for an empty text."""
    values = {name: getattr(spec, name) for name in names}
    return {name: None if value == "" else value for name, value in values.items()}


def details(spec: BackboneSpec) -> Row:
    """All that is known about a backbone, as text for people."""
    mean, std = (f"({' '.join(f'{value:.4g}' for value in values)})" for values in (spec.mean, spec.std))
    again = spec.retrained
    return {
        "name": spec.name,
        "family": spec.family,
        "learned from": spec.supervision if spec.trained else f"{spec.supervision} (untrained)",
        "data": spec.data,
        "how much": training_size(spec.data) or _UNKNOWN,
        "has seen": "nobody has said" if spec.seen is None else spec.seen.summary(),
        "who says so": "; ".join(spec.seen.sources if spec.seen else ()) or "the paper on its training data",
        "retrained": f"another training of {again.reference}: {again.change}" if again else "no",
        "paper": spec.paper or "none",
        "recipe": _recipe(spec),
        "weights": count_text(spec.parameters) or "unknown",
        "licence": spec.licence + (" (gated: its terms must be accepted)" if spec.gated else ""),
        "licence from": "; ".join(_licensors(spec)) or _UNKNOWN,
        "blocks": spec.depth,
        "width": spec.width,
        "heads": spec.heads or "none",
        "stages": "; ".join(
            f"{stage.blocks} blocks of {stage.width} channels, {stage.stride} px a cell"
            for stage in spec.stages
        ),
        "layers": f"0 to {spec.depth}" + (", final" if spec.has_final else ""),
        "prefix tokens": _prefix(spec),
        "input": f"{spec.input_size} px: {grid(spec)} cells",
        "mean, std": f"{mean}, {std}",
        "repository": spec.repository or f"none; original file: {spec.original}",
        "revision": _revision_policy(spec),
        **_file(spec),
        "fingerprint": "of its features is stored" if _has_fingerprint(spec) else "none is stored yet",
        "format": spec.origin.name,
        "to run it": _how_to_load(spec),
    }


def stub(spec: BackboneSpec) -> str:
    """A registry entry as Python code; fields that the configuration lacks are marked for the author."""
    values = {each.name: getattr(spec, each.name) for each in fields(spec)}
    if spec not in all_specs():  # the inferred values of these are placeholders
        values |= dict.fromkeys(WANTED, ...) | {"name": Path(spec.name).name.lower()}
    texts = {name: _TODO if each is ... else f"{each!r}," for name, each in values.items()}
    names = [each.name for each in fields(spec) if values[each.name] != each.default]
    lines = [f"    {name}={texts[name]}" for name in names]
    return "\n".join(["BackboneSpec(", *lines, ")"])


def _revision_policy(spec: BackboneSpec) -> str:
    if spec.origin.supply:
        return spec.origin.supply
    if not spec.repository:
        return "the digest of the file that is given"
    newest = "not pinned: the newest is taken when the backbone is loaded, and recorded"
    return f"pinned: {spec.revision}" if spec.revision else newest


def _recipe(spec: BackboneSpec) -> str:
    if spec.origin.supply:
        return f"its card, mini/weights/{spec.entry}" if spec.is_toy else "none: it is not trained"
    trained = f"; its files are for images of {spec.trained_size} px" if spec.trained_size else ""
    return f"{spec.recipe or _UNKNOWN}{trained}"


def _licensors(spec: BackboneSpec) -> list[str]:
    """Who says under which licence weights are: their authors, and the owner of the repository."""
    if spec.origin.supply:
        return ["LICENSE of this package"]
    authors = [f"LICENSE of github.com/{spec.code}"] if spec.code else []
    return authors + ([f"card of huggingface.co/{spec.repository}"] if spec.repository else [])


def _has_fingerprint(spec: BackboneSpec) -> bool:
    return (FINGERPRINTS / f"{spec.entry}.json").is_file()


def _file(spec: BackboneSpec) -> Row:
    """What is known of the published file: its name, digest and size, and who says so."""
    file, sums = spec.file, "in SHA256SUMS beside its card"
    if spec.origin.supply:
        return {"SHA-256": sums if spec.is_toy else "none: written from a seed, or no file"}
    short = "" if len(file.sha256) in (0, 64) else f" (the first {len(file.sha256)} digits)"
    return {
        "file": file.name or _UNKNOWN,
        "SHA-256": f"{file.sha256}{short}" if file.sha256 else _UNKNOWN,
        "bytes": _UNKNOWN if file.size is None else f"{file.size:,}",
        "sources": file.source or "nobody",
        **({"also known": file.note} if file.note else {}),
    }


def _how_to_load(spec: BackboneSpec) -> str:
    """The command that runs the backbone, after the steps that it needs first."""
    command = f"run --backbones {spec.name}"
    if not spec.repository:
        return f"fetch {spec.original}; {command} --weights {spec.name}=FILE"
    terms = f"accept the terms on huggingface.co/{spec.repository}, 'hf auth login'; "
    return f"{terms if spec.gated else ''}{command}"


def _prefix(spec: BackboneSpec) -> str:
    if not spec.prefix_tokens:
        return "none: vectors are averages over the grid"
    if not spec.has_cls:
        return f"{spec.prefix_tokens} registers and no class token: vectors are averages over the grid"
    more = spec.prefix_tokens - spec.has_cls
    return f"{spec.prefix_tokens}: the class token" + (f" and {more} more" if more else "")


def grid(spec: BackboneSpec) -> str:
    """Grid at the input size, such as 14x14; if stages differ, cells per side of first and last, 56..7."""
    sides = [spec.input_size // stage.stride for stage in spec.stages]
    return f"{sides[0]}x{sides[0]}" if len(sides) == 1 else f"{sides[0]}..{sides[-1]}"
