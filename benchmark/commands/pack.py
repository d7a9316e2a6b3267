"""Official folders as parquet, to be kept and read from the Hub: the command `data pack`."""

import shutil
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from benchmark import parsers
from benchmark.commands.command import command, ended_by_signals
from benchmark.option import OnePath, Option, OptionalPath, Whole, Words
from zoo.errors import InputError, unknown

if TYPE_CHECKING:
    from benchmark.engines.progress import Reporter
    from tasks.datasets.base import Data, DatasetEntry
    from tasks.datasets.packs.manifest import PackedDataset
    from tasks.datasets.packs.writing import DatasetPlan


@dataclass(frozen=True)
class PackRequest:
    """Which datasets to write as parquet, and where."""

    data: OnePath = Option(..., "Folder that holds the real datasets.", parsers.path)
    _: KW_ONLY
    to: OptionalPath = Option(None, "Folder of the pack; datasets that it has already stay.", parsers.path)
    datasets: Words = Option(
        (),
        "Datasets by the names that `check` shows.",
        parsers.listed,
        several=True,
        usual="all that are there",
    )
    shard_megabytes: Whole = Option(
        500, "Megabytes of the files of one parquet file at most.", parsers.whole, least=1
    )


@command("data pack", PackRequest)
def pack_command(request: PackRequest) -> None:
    """Write official folders as parquet, which `run --data hf:FOLDER`, or hf:OWNER/NAME, reads as it is.

    Images, keys and scores are those of the folder. Equal files give equal parquet files by one version of
    pyarrow. A writing that was interrupted goes on when it is started again; nothing is written over.

    Example: `python -m benchmark data pack DATA --to PACK --datasets davis-2017-val`
    """
    from tabulate import tabulate

    with ended_by_signals("interrupted; run again to go on with the shards that are missing") as report:
        packs = _packed(request, report)
    rows = []
    for name, pack in packs.items():
        megabytes = sum(shard.bytes for shard in pack.shards) / 1e6
        rows.append((name, f"{pack.files:,}", f"{megabytes:,.1f}", len(pack.shards), pack.coverage))
    headers = ["dataset", "files", "MB", "shards", "what is there"]
    typer.echo(tabulate(rows, headers=headers, disable_numparse=True))
    typer.echo(f"read it with --data hf:{request.to}; nothing was uploaded")


def _packed(request: PackRequest, report: "Reporter") -> "dict[str, PackedDataset]":
    """Write datasets of a folder as a pack; gives what was written, by name."""
    from tasks.datasets.files import is_packed
    from tasks.datasets.packs.writing import plan_dataset, require_room, write_dataset

    data, target = request.data, request.to
    if target is None:
        raise InputError("data pack takes the folder of the pack: give --to DIR")
    if is_packed(data) or not data.is_dir():
        raise InputError(
            f"expected the datasets' folder at {data}, which does not exist; name it behind `data pack`"
        )
    entries = _chosen(request)
    require_room(target, [entry.name for entry in entries])
    plans = [plan_dataset(data, entry, request.shard_megabytes * 10**6) for entry in entries]
    _require_space(target, plans)
    packs = {}
    for plan in plans:
        with report.bar(f"packing {plan.entry.name}", plan.bytes, "bytes") as advance:
            packs[plan.entry.name] = write_dataset(data, target, plan, advance)
    return packs


def _require_space(target: Path, plans: "Sequence[DatasetPlan]") -> None:
    """Raise InputError where the disk of a folder, which may not be there yet, has no room for the shards."""
    there = next(folder for folder in (target.absolute(), *target.absolute().parents) if folder.exists())
    files = ((target / shard.name, shard.bytes) for plan in plans for shard in plan.shards)
    needed = sum(size for file, size in files if not file.exists())
    if needed > (free := shutil.disk_usage(there).free):
        raise InputError(
            f"expected room for {needed:,} bytes in {target}, found {free:,}; choose another --to"
        )


def _chosen(request: PackRequest) -> "Sequence[DatasetEntry[Data]]":
    """The datasets that were named, or all that are there; raises InputError."""
    from tasks.datasets.catalogue import DATASETS, State, inspect

    known = {entry.name: entry for entry in DATASETS}
    for name in request.datasets:
        if name not in known:
            raise unknown("dataset", name, known)
    chosen = [known[name] for name in dict.fromkeys(request.datasets)] or [*DATASETS]
    inspections = [inspect(request.data, entry) for entry in chosen]
    for each in inspections:
        if each.state is State.BROKEN or (each.state is State.MISSING and request.datasets):
            raise InputError(f"{each.name} is {each.state.value} and was not packed: {each.text}")
    there = [
        entry for entry, each in zip(chosen, inspections, strict=True) if each.state is not State.MISSING
    ]
    if not there:
        raise InputError(
            f"expected an official dataset in {request.data}, found none; see `check --data DIR`"
        )
    return there
