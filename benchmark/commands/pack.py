"""Convert official datasets to packs, which can be kept on the Hub: the command `pack`."""

import shutil
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.commands.result import rows_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, OnePath, Option, OptionalPath, Plain, Words
from layerboard.zoo.errors import InputError, require_known

if TYPE_CHECKING:
    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.tasks.datasets.base import Data, DatasetEntry
    from layerboard.tasks.datasets.packs.manifest import PackedDataset


class PackRequest(Form, kw_only=False):
    """Options of `pack`: the datasets to convert, and where to write them."""

    data: OnePath = Option(..., "Folder of the official datasets.")
    _: KW_ONLY
    to: OptionalPath = Option(None, "Folder to write; datasets that it already has are kept.")
    datasets: Words = Option(
        (), "Datasets, named as `check` shows them.", parsers.listed, usual="all that are found"
    )
    shard_megabytes: Plain[int] = Option(500, "Maximum size of one file of the pack in megabytes.", least=1)


@command("pack", PackRequest)
def pack_command(request: PackRequest) -> None:
    """Convert official datasets to a pack of Arrow files.

    `run --data hf:FOLDER` or hf:OWNER/NAME reads it. Scores on the pack equal those on the folder. With the
    same version of pyarrow, equal images give equal files. An interrupted conversion continues when it is
    started again; nothing is overwritten.

    Example: `layerboard pack DATA --to PACK --datasets davis-2017-val`
    """
    with ended_by_signals("interrupted; run again to go on with the shards that are missing") as report:
        packs = _packed(request, report)
    rows = []
    for name, pack in packs.items():
        megabytes = sum(shard.bytes for shard in pack.shards) / 1e6
        rows.append((name, f"{pack.files:,}", f"{megabytes:,.1f}", len(pack.shards), pack.coverage))
    say(rows_text(["dataset", "files", "MB", "shards", "what is there"], rows))
    say(f"read it with --data hf:{request.to}; nothing was uploaded")


def _packed(request: PackRequest, report: "Reporter") -> "dict[str, PackedDataset]":
    from layerboard.tasks.datasets.reading.files import is_packed
    from layerboard.tasks.datasets.write_packs import (
        plan_dataset,
        require_room,
        require_same_pack,
        total_size,
        write_dataset,
    )

    data, target = request.data, request.to
    if target is None:
        raise InputError("pack takes the folder of the pack: give --to DIR")
    if is_packed(data) or not data.is_dir():
        raise InputError(
            f"expected the datasets' folder at {data}, which does not exist; name it behind `pack`"
        )
    entries = _chosen(request)
    require_room(target, [entry.name for entry in entries])
    plans = [plan_dataset(data, entry, request.shard_megabytes * 10**6) for entry in entries]
    for plan in plans:
        require_same_pack(data, target, plan)
    shards = ((target / name, files) for plan in plans for name, files in plan.shards.items())
    need = sum(total_size(files) for file, files in shards if not file.exists())
    disk = next(folder for folder in (target.absolute(), *target.absolute().parents) if folder.exists())
    if need > (free := shutil.disk_usage(disk).free):
        raise InputError(f"expected room for {need:,} bytes in {target}, found {free:,}; choose another --to")
    packs = {}
    for plan in plans:
        with report.bar(f"packing {plan.entry.name}", plan.bytes, "bytes") as advance:
            packs[plan.entry.name] = write_dataset(data, target, plan, advance)
    return packs


def _chosen(request: PackRequest) -> "Sequence[DatasetEntry[Data]]":
    from layerboard.tasks.datasets.catalogue import DATASETS, State, inspect

    known, data = {entry.name: entry for entry in DATASETS}, request.data
    require_known("dataset", request.datasets, known)
    present = []
    for entry in [known[name] for name in dict.fromkeys(request.datasets)] or DATASETS:
        inspection = inspect(data, entry)
        if inspection.state is State.BROKEN or (inspection.state is State.MISSING and request.datasets):
            state = inspection.state.value
            raise InputError(f"{inspection.name} is {state} and was not packed: {inspection.text}")
        if inspection.state is not State.MISSING:
            present.append(entry)
    if not present:
        raise InputError(f"expected an official dataset in {data}, found none; see `check --data DIR`")
    return present
