"""The commands of ``data``. Heavy libraries are imported by the commands that need them."""

import typer

from benchmark.cli.interrupt import ended_by_signals
from benchmark.cli.options import command_of
from benchmark.engines.progress import Terminal
from benchmark.request.data import PackRequest

data_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Datasets in another form than their official one.",
)


@data_app.callback()
def every_data_command() -> None:
    """Without it, the only command of ``data`` would have no name."""


@data_app.command("pack")
@command_of(PackRequest)
def pack_command(request: PackRequest) -> None:
    """Write official folders as parquet, which `run --data hf:FOLDER`, or hf:OWNER/NAME, reads as it is.

    Images, keys and scores are those of the folder. Equal files give equal parquet files by one version of
    pyarrow. A writing that was interrupted goes on when it is started again; nothing is written over.

    Example: `python -m benchmark data pack DATA --to PACK --datasets davis-2017-val`
    """
    from tabulate import tabulate

    report = Terminal()
    with ended_by_signals(report, "interrupted; run again to go on with the shards that are missing"):
        from benchmark.exchange.packing import packed

        found = packed(request, report)
    rows = [
        (
            name,
            f"{one.files:,}",
            f"{sum(shard.bytes for shard in one.shards) / 1e6:,.1f}",
            len(one.shards),
            one.coverage,
        )
        for name, one in found.items()
    ]
    typer.echo(
        tabulate(rows, headers=["dataset", "files", "MB", "shards", "what is there"], disable_numparse=True)
    )
    typer.echo(f"read it with --data hf:{request.to}; nothing was uploaded")
