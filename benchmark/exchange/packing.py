"""Official folders as parquet, to be kept and read from the Hub."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmark.engines.progress import Reporter
from benchmark.request.data import PackRequest
from tasks.datasets.base import Data, DatasetEntry
from tasks.datasets.catalogue import DATASETS, State, inspect
from tasks.datasets.files import is_packed
from tasks.datasets.packs.manifest import PackedDataset
from tasks.datasets.packs.writing import DatasetPlan, plan_dataset, require_room, write_dataset
from zoo.errors import InputError, unknown


def packed(request: PackRequest, report: Reporter) -> dict[str, PackedDataset]:
    """Write datasets of a folder as a pack; gives what was written, by name.

    Raises:
        InputError: No folder, an unknown dataset, one that is missing or broken, or a pack that has it.
    """
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
    found = {}
    for plan in plans:
        with report.bar(f"packing {plan.entry.name}", plan.bytes, "bytes") as advance:
            found[plan.entry.name] = write_dataset(data, target, plan, advance)
    return found


def _require_space(target: Path, plans: Sequence[DatasetPlan]) -> None:
    """Raise InputError where the disk of a folder, which may not be there yet, has no room for the shards."""
    there = next(folder for folder in (target.absolute(), *target.absolute().parents) if folder.exists())
    files = ((target / shard.name, shard.bytes) for plan in plans for shard in plan.shards)
    needed = sum(size for file, size in files if not file.exists())
    if needed > (free := shutil.disk_usage(there).free):
        raise InputError(
            f"expected room for {needed:,} bytes in {target}, found {free:,}; choose another --to"
        )


def _chosen(request: PackRequest) -> Sequence[DatasetEntry[Data]]:
    """The datasets that were named, or all that are there; raises InputError."""
    known = {entry.name: entry for entry in DATASETS}
    for name in request.datasets:
        if name not in known:
            raise unknown("dataset", name, known)
    chosen = [known[name] for name in dict.fromkeys(request.datasets)] or [*DATASETS]
    states = [inspect(request.data, entry) for entry in chosen]
    for one in states:
        if one.state is State.BROKEN or (one.state is State.MISSING and request.datasets):
            raise InputError(f"{one.name} is {one.state.value} and was not packed: {one.text}")
    there = [entry for entry, one in zip(chosen, states, strict=True) if one.state is not State.MISSING]
    if not there:
        raise InputError(
            f"expected an official dataset in {request.data}, found none; see `check --data DIR`"
        )
    return there
