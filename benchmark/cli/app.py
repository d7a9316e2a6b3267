"""The command line. Heavy libraries are imported by the commands that need them."""

import errno
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmark.cli.list import list_command
from benchmark.cli.pretrain import pretrain_command
from benchmark.cli.reproduce import reproduce_command
from benchmark.cli.score import SEVERAL as OF_SCORERS
from benchmark.cli.score import score_app
from benchmark.engines.base import WorkerDiedError
from benchmark.request import Request, default_cache, default_workers, parse_interpolation, parse_taps
from zoo.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Which frozen vision backbone, and which of its layers, is best for which task?",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(score_app, name="score")


class DtypeName(StrEnum):
    """Dtypes of the forward pass."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class StoreDtype(StrEnum):
    """Dtypes of stored vectors."""

    float32 = "float32"
    float16 = "float16"


Output = Annotated[Path, typer.Option("--output", "-o", help="Folder of records and tables.")]
Cache = Annotated[
    Path | None,
    typer.Option(help="Folder of features and rendered data; they serve later runs.", show_default=False),
]


@app.command("run")
def run_command(
    backbones: Annotated[
        list[str] | None,
        typer.Option(
            "--backbones",
            "-b",
            help="Names, patterns ('dino-*'), Hub ids (owner/name[@revision]), directories, Python objects "
            "(module:function); several values may follow.",
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option("--tasks", "-t", help="Tasks; several may follow. Default: all.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="Suite; default: mini, or standard with --data.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder that holds the real datasets.", show_default=False)
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(help="Your own images: a folder of class folders, or hf:DATASET.", show_default=False),
    ] = None,
    output: Output = Path("results"),
    cache: Cache = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    dtype: Annotated[DtypeName, typer.Option(help="Dtype of the forward pass.")] = DtypeName.float32,
    store_dtype: Annotated[
        StoreDtype, typer.Option(help="Dtype of stored vectors; float16 halves the disk.")
    ] = StoreDtype.float32,
    batch_size: Annotated[int, typer.Option(min=1, help="Images in a batch.")] = 64,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads that decode and score.", show_default="processors")
    ] = None,
    layers: Annotated[str, typer.Option(help="all, or a list such as 4,8-12,final (0: the input).")] = "all",
    taps: Annotated[
        str, typer.Option(help="What to read of them, one or several: block,norm1,attention,norm2,mlp.")
    ] = "block",
    input_size: Annotated[
        int | None,
        typer.Option(min=1, help="Side of the images in pixels.", show_default="each backbone's own"),
    ] = None,
    interpolation: Annotated[
        str, typer.Option(help="Rule for position embeddings at other sizes: huggingface or dino.")
    ] = "huggingface",
    poolings: Annotated[str, typer.Option(help="Vectors to keep: cls, mean, or both.")] = "cls,mean",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Less data, to try things: images a class, videos, pairs, ...", show_default=False
        ),
    ] = None,
    floor: Annotated[bool, typer.Option(help="Run the random floor, too.")] = True,
    protocol: Annotated[
        str | None,
        typer.Option(help="standard, or paper: as the code of Teaching Matters.", show_default="the suite's"),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weights",
            help="NAME=PATH: a backbone's own directory in Hugging Face format, or its authors' file "
            "(.safetensors, .pth); several may follow.",
        ),
    ] = None,
) -> None:
    """Run every layer of backbones through tasks and write leaderboards.

    Without options: the mini suite, offline, in one to two minutes.
    """
    from benchmark.api import carry_out
    from benchmark.engines.progress import Terminal

    request = Request(
        output=output,
        cache=cache or default_cache(),
        device=device,
        dtype=dtype.value,
        batch_size=batch_size,
        workers=workers or default_workers(),
        layers=layers,
        taps=parse_taps(part.strip() for part in taps.split(",")),
        poolings=parse_poolings(poolings),
        store_dtype=store_dtype.value,
        suite=suite,
        backbones=tuple(backbones or ()),
        tasks=tuple(tasks or ()),
        data=data,
        images=images,
        limit=limit,
        floor=floor,
        protocol=protocol,
        weights=parse_weights(weights or []),
        input_size=input_size,
        interpolation=parse_interpolation(interpolation),
    )
    report = Terminal()
    try:
        summary = carry_out(request, report)
    except KeyboardInterrupt:
        report.say("interrupted; what is finished is kept, run again to go on")
        raise typer.Exit(130) from None
    from benchmark.cli.summary import show

    raise typer.Exit(show(summary, report))


@app.command("check")
def check_command(
    data: Annotated[Path, typer.Option(help="Folder that holds the real datasets.")],
) -> None:
    """Say which datasets are there, complete, partial, missing or broken, before any GPU hour is spent."""
    from tasks.datasets.catalogue import DATASETS, State, inspect

    if not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    found = [inspect(data, entry) for entry in DATASETS]
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "state", "what is there"):
        table.add_column(column, overflow="fold")
    for one in found:
        table.add_row(one.name, one.state.value, one.text)
    Console().print(table)
    usable = any(one.state in (State.COMPLETE, State.PARTIAL) for one in found)
    broken = any(one.state is State.BROKEN for one in found)
    raise typer.Exit(2 if broken or not usable else 0)


@app.command("leaderboard")
def leaderboard_command(
    output: Output = Path("results"),
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
        for path in write_pages(records, tables or output / "tables", output / "items", endings):
            typer.echo(path)
        return
    differences = check_pages(records, tables or tables_folder())
    for line in differences:
        typer.echo(line)
    if not differences:
        typer.echo("The committed pages are current.")
    raise typer.Exit(1 if differences else 0)


app.command("list")(list_command)
app.command("reproduce")(reproduce_command)
app.command("pretrain")(pretrain_command)


def parse_weights(texts: list[str]) -> dict[str, Path]:
    """Paths by backbone of an option; raises InputError for anything but NAME=PATH."""
    found = {}
    for text in texts:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            raise InputError(
                f"--weights takes NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar; found {text!r}"
            )
        found[name] = Path(path)
    return found


def parse_poolings(text: str) -> tuple[str, ...]:
    """Poolings of an option, in a fixed order; raises InputError for an unknown one."""
    chosen = {part.strip() for part in text.split(",")}
    if not chosen <= {"cls", "mean"}:
        raise InputError(f"--poolings takes cls, mean or cls,mean; found {text!r}")
    return tuple(sorted(chosen))


def spread(arguments: list[str]) -> list[str]:
    """Repeat an option for each of its values: ``--tasks a b`` becomes ``--tasks a --tasks b``."""
    several = {"--backbones", "-b", "--tasks", "-t", "--weights", "--source", "--family"}
    if arguments[:1] == ["score"]:
        several = {option for command, option in OF_SCORERS if command in arguments[1:2]}
    result: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in several else ""
            result.append(argument)
        elif option and result[-1] != option:
            result += [option, argument]
        else:
            result.append(argument)
    return result


def main() -> None:
    """Run the command line; bad input is one sentence and exit code 2."""
    try:
        app(spread(sys.argv[1:]))
    except (InputError, WorkerDiedError) as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {error}", markup=False)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        text = "error: no space is left on the disk; free some and run again: what is finished is kept"
        Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)
        sys.exit(2)
