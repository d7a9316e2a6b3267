"""The command `leaderboard`: the pages again. Heavy libraries are imported when it runs."""

from pathlib import Path
from typing import Annotated

import typer


def leaderboard_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of records and tables.")] = Path(
        "results"
    ),
    tables: Annotated[
        Path | None, typer.Option(help="Where the pages go; default: OUTPUT/tables.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the records with the committed pages instead.")
    ] = False,
    formats: Annotated[
        str, typer.Option("--format", help="What to write: csv, md, html; several with commas.")
    ] = "csv,md",
) -> None:
    """Write the pages again from the records, or check that the committed ones are current."""
    from leaderboards.check import check_pages
    from leaderboards.pages.build import tables_folder, write_pages
    from leaderboards.records.record import read_records

    records = read_records([output / "records"])
    if not check:
        endings = [part.strip() for part in formats.split(",")]
        folder = tables or output / "tables"
        for path in write_pages(records, folder, output / "items", endings, output / "arrays"):
            typer.echo(path)
        return
    differences = check_pages(records, tables or tables_folder())
    for line in differences:
        typer.echo(line)
    if not differences:
        typer.echo("The committed pages are current.")
    raise typer.Exit(1 if differences else 0)
