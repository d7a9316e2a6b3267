"""Submissions of which one thing was changed: `verify` must say that something is not as it says."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import layerboard
from layerboard.leaderboards.records.checksum import companions_of, file_digest, write_checked
from layerboard.leaderboards.records.items import read_items, write_items
from layerboard.leaderboards.records.manifest import MANIFEST, digests_of
from layerboard.zoo.errors import InputError
from tests.faults.counts import Count
from tests.faults.damage import exchange, flip, remove, truncate
from tests.faults.places import Reference

SCORED = ("value", "ci_low", "ci_high", "n")
"""Numbers of records that follow from items."""


def change_record(path: Path, draw: random.Random, *, scored: bool) -> str:
    """Another value in one cell of a file of records; where they must be scored, of one that has items."""
    records = pd.read_parquet(path)
    column = draw.choice(SCORED) if scored else draw.choice([*records.columns])
    rows = records.index[records[column].notna()] if scored else records.index
    if not len(rows):
        return ""
    row = draw.choice([*rows])
    before = records.loc[row, column]
    if isinstance(before, str):
        records.loc[row, column] = f"{before}x"
    elif isinstance(before, bool | np.bool_):
        records.loc[row, column] = not before
    else:
        is_whole = isinstance(before, int | np.integer)
        change = draw.choice([-1, 1]) * (1 if is_whole else abs(before) * draw.uniform(1e-3, 1) + 0.01)
        records.loc[row, column] = 50 if np.isnan(before) else before + type(before)(change)
    write_checked(records, path, companions_of(path.read_bytes()))
    return f"{column} of {path.name}, row {row}: {before}"


def change_item(path: Path, draw: random.Random, *, scored: bool) -> str:
    """Another value of one item; where it must be scored, of a column that a score is a mean of."""
    items = path.parents[2] / "items" / path.parent.name / path.name
    if not (measured := read_items(items)):
        return ""
    place = draw.choice([*measured])
    values = {name: column.copy() for name, column in measured[place].values.items()}
    means = {each.column for each in measured[place].statistics.values() if each.over in ("items", "strata")}
    names = [name for name in values if name in means or not scored]
    if not names:
        return ""
    column = draw.choice(names)
    there = np.flatnonzero(~np.isnan(values[column]))
    row = draw.choice([*there.tolist()])
    values[column][row] += draw.choice([1, 100])
    measured[place] = replace(measured[place], values=values)
    write_items(measured, items)
    records = pd.read_parquet(path)
    write_checked(records, path, companions_of(path.read_bytes()) | {"items": file_digest(items)})
    return f"{column} of item {row} of {path.name}"


def change_weights(path: Path, draw: random.Random, *, scored: bool) -> str:
    """Another digest of the weights in all records of a file, or in the manifest."""
    records, manifest = pd.read_parquet(path), path.parents[2] / MANIFEST
    before = str(records["revision"].iloc[0])
    place = draw.randrange(len(before))
    after = before[:place] + draw.choice([each for each in "0123456789" if each != before[place]])
    after += before[place + 1 :]
    if scored or draw.random() < 0.5:
        for other in path.parent.glob("*.parquet") if scored else [path]:
            rows = pd.read_parquet(other).assign(revision=after)
            write_checked(rows, other, companions_of(other.read_bytes()))
    else:
        manifest.write_text(manifest.read_text().replace(before, after))
    return f"weights {before} as {after}"


def damage(path: Path, draw: random.Random, *, scored: bool) -> str:
    """A file that is damaged, gone, or another one, without any checksum that fits."""
    del scored
    victim = draw.choice(sorted(each for each in path.parents[2].rglob("*.*") if each.name != MANIFEST))
    way = draw.choice([flip, truncate, remove, exchange])
    before = victim.read_bytes()
    way(victim, draw)
    same = victim.is_file() and victim.read_bytes() == before
    return "" if same else f"{way.__name__} {victim.name}"


WAYS: tuple[Callable[..., str], ...] = (change_record, change_item, change_weights, damage)


def sign(folder: Path) -> None:
    """Let the manifest say what the files are now."""
    path = folder / MANIFEST
    manifest = json.loads(path.read_text())
    rows = pd.concat([pd.read_parquet(each) for each in sorted((folder / "records").rglob("*.parquet"))])
    weights = {name: ", ".join(sorted({*part})) for name, part in rows.groupby("backbone")["revision"]}
    path.write_text(json.dumps(manifest | {"files": digests_of(folder), "weights": weights}))


def change_once(folder: Path, draw: random.Random, way: Callable[..., str], *, signed: bool) -> str:
    """Change one thing of a submission, and its manifest, too, if it is to be signed; says what."""
    while True:
        path = draw.choice(sorted((folder / "records").rglob("*.parquet")))
        rows = pd.read_parquet(path, columns=["family", "tap", "other", "metric"])
        has_items = (folder / "items" / path.relative_to(folder / "records")).is_file()
        if way is change_item and not has_items:
            continue
        if signed and way is change_record and not (has_items and all_scored(folder, path)):
            continue
        if signed and way is change_weights and (rows["family"] == "random").any():
            continue  # it has none
        if title := way(path, draw, scored=signed):
            break
    if signed:
        sign(folder)
    return f"{title}{', signed' if signed else ''}"


def all_scored(folder: Path, path: Path) -> bool:
    """Whether all numbers of a file of records follow from items."""
    measured = read_items(folder / "items" / path.relative_to(folder / "records"))
    records = pd.read_parquet(path)
    known = {(place, name) for place, items in measured.items() for name in items.statistics}
    rows = records[["layer", "tap", "pooling", "metric"]].itertuples(index=False, name=None)
    return all((row[:3], row[3]) in known for row in rows) and bool((records["head"] == -1).all())


def problems_of(folder: Path) -> list[str]:
    """What `verify` says of a submission."""
    try:
        return [*layerboard.verify(folder).frame["problem"]]
    except InputError as error:
        return [str(error)]


def change_submissions(reference: Reference, folder: Path, times: int, seed: int = 0) -> Count:
    """Change one record, item, digest of weights or file of a submission, and verify it.

    What is wanted: at least one sentence. Half of the changes of records, items and weights are signed: all
    checksums and the manifest fit them, so that only scores and the registry can tell.
    """
    draw, count = random.Random(seed), Count("changed submissions")
    sent = layerboard.submit(reference.place / "out", to=folder / "repository", name="whole", partial=True)
    whole = sent.paths[0].parent
    assert problems_of(whole) == []
    for number in range(times):
        place = folder / f"changed-{number}"
        shutil.copytree(whole, place)
        way = draw.choice(WAYS)
        title = change_once(place, draw, way, signed=way is not damage and draw.random() < 0.5)
        count.note(title, "" if problems_of(place) else "nothing was said")
        shutil.rmtree(place)
    return count
