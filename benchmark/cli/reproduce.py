"""The command `reproduce`: measured beside published. Heavy libraries are imported when it runs."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from leaderboards.literature import Published


class Format(StrEnum):
    """How the comparison is written."""

    table = "table"
    csv = "csv"
    json = "json"


def reproduce_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of records and tables.")] = Path(
        "results"
    ),
    backbones: Annotated[
        list[str] | None,
        typer.Option("--backbones", "-b", help="Names or patterns ('dino-*'); several may follow."),
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option("--tasks", "-t", help="Tasks; several may follow. Default: all.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Source of published numbers; may be repeated. Default: all.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="A table, or everything as CSV or JSON.")
    ] = Format.table,
    everything: Annotated[
        bool, typer.Option("--all", help="Show numbers that were not run or are not comparable, too.")
    ] = False,
) -> None:
    """Compare what was measured with published numbers.

    A published number agrees where it meets the 95 % interval of the measured one. Exit code 1 if one is off.
    """
    from leaderboards.literature import all_published
    from leaderboards.pages.csv import inert
    from leaderboards.reproduce import counts, reproduce

    chosen = choose(all_published(), backbones or (), tasks or (), source or ())
    frame = reproduce(_records(output / "records"), chosen)
    found = counts(frame)
    summary = f"{len(frame)} published numbers: " + ", ".join(f"{n} {name}" for name, n in found.items() if n)
    if form is Format.csv:
        typer.echo(inert(frame).to_csv(index=False, lineterminator="\n"), nl=False)
    elif form is Format.json:
        rows = json.loads(frame.to_json(orient="records"))
        typer.echo(json.dumps({"counts": found, "numbers": rows}, indent=2, ensure_ascii=False))
    else:
        _show(frame, everything)
    typer.echo(summary, err=form is not Format.table)
    raise typer.Exit(1 if found["off"] else 0)


def choose(
    published: "Sequence[Published]", backbones: Sequence[str], tasks: Sequence[str], sources: Sequence[str]
) -> "tuple[Published, ...]":
    """The published numbers that were asked for, in order; all of what is not narrowed down.

    Args:
        published: All of them.
        backbones: Names and patterns of backbones.
        tasks: Names of tasks.
        sources: Keys of sources.

    Raises:
        InputError: A name or pattern fits none of them, or nothing is left.
    """
    for what, given, known in (
        ("backbone", backbones, {one.backbone for one in published}),
        ("task", tasks, {one.task for one in published}),
        ("source", sources, {one.source for one in published}),
    ):
        _require_known(what, given, known)
    chosen = tuple(
        one
        for one in published
        if (not backbones or any(fnmatchcase(one.backbone, pattern) for pattern in backbones))
        and (not tasks or one.task in tasks)
        and (not sources or one.source in sources)
    )
    if not chosen:
        raise InputError("no published number is of all that was named together; leave some of it out")
    return chosen


def _require_known(what: str, given: Iterable[str], known: set[str]) -> None:
    """Raise InputError for a name, or a backbone's pattern, that no published number has."""
    for name in given:
        if not any(fnmatchcase(one, name) if what == "backbone" else one == name for one in known):
            close = get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are some of {', '.join(sorted(known))}"
            raise InputError(f"there is no published number of the {what} {name!r}; {hint}")


def _records(folder: Path) -> "pd.DataFrame":
    """All records below a folder; an empty frame where there are none.

    Raises:
        InputError: There is no such output.
    """
    from leaderboards.records.record import read_records, to_frame

    if not folder.parent.is_dir():
        raise InputError(
            f"expected a folder of records and tables at {folder.parent}, which does not exist; "
            "`python -m benchmark run` writes one, --output names it"
        )
    there = any(not path.name.startswith(".") for path in folder.rglob("*.parquet"))
    return read_records([folder]) if there else to_frame([])


def _show(frame: "pd.DataFrame", everything: bool) -> None:
    """Print the table of what was run, or of everything."""
    from leaderboards.pages.markdown import table
    from leaderboards.reproduce import NOT_MEASURED

    shown = frame if everything else frame[~frame["verdict"].isin(NOT_MEASURED)]
    if len(shown):
        typer.echo(table(_text(shown), left=3) + "\n")
    else:
        typer.echo("None of them was run. --all shows what they are.")


def _text(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows as a reader wants them."""
    import pandas as pd

    return pd.DataFrame(
        [_cells(row) for row in frame.astype(object).where(frame.notna(), None).to_dict("records")]
    )


def _cells(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """One row as text; empty cells where nothing was measured."""
    from leaderboards.display import fixed

    protocol = "" if row["protocol"] == "none" else f" ({row['protocol']})"
    measured, interval = row["measured"] is not None, row["ci_low"] is not None
    return {
        "backbone": row["backbone"],
        "score": f"{row['task']} {row['metric']}, {row['dataset']}{protocol}",
        "source": f"{row['source']}, {row['table']}{' (second hand)' if row['second_hand'] else ''}",
        "published": fixed(row["published"], row["decimals"]) + _layer(row["published_layer"], row["rule"]),
        "measured": fixed(row["measured"], 2) + _layer(row["measured_layer"], row["rule"])
        if measured
        else "",
        "95 % interval": f"{fixed(row['ci_low'], 2)} to {fixed(row['ci_high'], 2)}" if interval else "",
        "difference": f"{row['difference']:+.2f}" if measured else "",
        "verdict": row["verdict"],
        "reason": row["reason"],
    }


def _layer(layer: int | None, rule: str) -> str:
    """The layer of a score in brackets; the rule where it says so."""
    if rule == "final":
        return " (final)"
    return "" if layer is None else f" ({layer})"
