"""The command `list`: backbones, tasks, suites and protocols. Imports no torch but for protocols."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmark.cli.listing import (
    Filter,
    Row,
    backbone,
    brief,
    details,
    facts,
    parse_count,
    parse_families,
    protocols,
    select,
    suites,
    tasks,
)
from zoo.errors import InputError
from zoo.spec import BackboneSpec

_NUMBERS = ("blocks", "grid", "weights")


class Listed(StrEnum):
    """What `list` shows."""

    backbones = "backbones"
    tasks = "tasks"
    suites = "suites"
    protocols = "protocols"


def list_command(
    what: Annotated[Listed, typer.Argument(help="What to list.")],
    name: Annotated[
        str | None,
        typer.Argument(help="A backbone's name or Hub id: all that is known of it.", show_default=False),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(help="Backbones of a family (dino, clip, dinov2, ...); may be repeated."),
    ] = None,
    supervision: Annotated[
        str, typer.Option(help="Part of what they learned from: images, texts, labels, ImageNet-22k, ...")
    ] = "",
    licence: Annotated[
        str,
        typer.Option(
            help="Part of the licence: apache, mit, cc-by-nc, ...; "
            "commercial: those alone whose names allow it."
        ),
    ] = "",
    max_parameters: Annotated[
        str | None, typer.Option(help="Most weights: 100M, 1.2G.", show_default=False)
    ] = None,
    gated: Annotated[
        bool | None,
        typer.Option(
            "--gated/--no-gated", help="Only those whose terms must be accepted, or only the others."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines; all that is known.")] = False,
) -> None:
    """List backbones, tasks, suites or protocols, or all that is known of one backbone."""
    wanted = Filter(
        families=parse_families(family or ()),
        supervision=supervision,
        licence=licence,
        max_parameters=None if max_parameters is None else parse_count(max_parameters),
        gated=gated,
    )
    if wanted != Filter() and (name is not None or what is not Listed.backbones):
        raise InputError("Filters are for 'list backbones' without a name.")
    if name is not None:
        _show_one(what, name, as_json=as_json)
    elif what is Listed.backbones:
        found = select(wanted)
        if as_json:
            _print_json([facts(spec) for spec in found])
            return
        _print_table([brief(spec) for spec in found])
        _say_more(found)
    else:
        rows = {Listed.tasks: tasks, Listed.suites: suites, Listed.protocols: protocols}[what]()
        _print_json(rows) if as_json else _print_table(rows)


def _show_one(what: Listed, name: str, *, as_json: bool) -> None:
    if what is not Listed.backbones:
        raise InputError(f"Only backbones are shown by name; leave out {name!r}.")
    spec = backbone(name)
    if as_json:
        _print_json(facts(spec))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for title, value in details(spec).items():
        table.add_row(title, str(value))
    Console(highlight=False).print(table)


def _say_more(found: Sequence[BackboneSpec]) -> None:
    star = "; * gated: its terms must be accepted first" if any(spec.gated for spec in found) else ""
    text = f"{len(found)} backbones; 'list backbones NAME' tells all of one{star}"
    Console(highlight=False).print(text)


def _print_json(content: object) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def _print_table(rows: Sequence[Row]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in rows[0]:
        table.add_column(
            column,
            overflow="fold",
            no_wrap=column in ("name", *_NUMBERS),
            justify="right" if column in _NUMBERS else "left",
        )
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(highlight=False).print(table)
