"""Submissions that attack a results repository: refused or left out in words, and what is honest stays."""

import csv
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import layerboard
from layerboard.benchmark.plan.facts import known_names
from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.exchange.check import tidy_records
from layerboard.leaderboards.exchange.repository import Repository
from layerboard.leaderboards.records import checksum
from layerboard.leaderboards.records.checksum import companions_of, file_digest, write_checked
from layerboard.leaderboards.records.files import safe_name, scored_path, task_key
from layerboard.leaderboards.records.manifest import MANIFEST, digests_of, mark_verified, verified_results
from tests.faults.counts import Count
from tests.faults.places import Reference
from tests.faults.submissions import problems_of

EVIL = "evil-net"
LOOKALIKES = (
    "\u200b",
    "\u0430",
    "\u2010",
    "\u00ad",
    " ",
    "\u00a0",
    "\ufeff",
    "!",
    "\u0301",
    "\n",
    "\t",
    "?",
    "#",
)
PATHS = ("index", "changes", "..", "../x", "/etc", "a//b", "README", "submissions", "con/..", ".x", "x.", "")
FORMULAS = (  # of which none may begin a cell
    *("=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "=cmd|' /C calc'!A0", "'=1", "-2+3+cmd", "=HYPERLINK(1)"),
)


@dataclass(frozen=True)
class Siege:
    """A repository with an honest, verified submission and one that attacks it."""

    repository: Path
    honest: Path
    evil: Path
    draw: random.Random

    def victim(self, folder: Path | None = None) -> Path:
        """A file of records."""
        return self.draw.choice(sorted(((folder or self.evil) / "records").rglob("*.parquet")))

    def change(self, path: Path, **columns: object) -> None:
        """Write some columns of a file of records anew, with its checksum."""
        rows = pd.read_parquet(path)
        write_checked(rows.assign(**columns), path, companions_of(path.read_bytes()))

    def value(self, path: Path, column: str, value: object) -> None:
        """Write one cell of a file of records anew, or all of the column."""
        rows = pd.read_parquet(path)
        cells = rows[column].astype(object)
        row = self.draw.randrange(len(rows))
        cells[slice(None) if self.draw.random() < 0.5 else row] = value
        kind = rows[column].dtype
        try:
            cells = cells.astype(kind)
        except (ValueError, TypeError, OverflowError):
            cells = cells.astype(str) if isinstance(value, str) else cells.map(lambda _: value)
        write_checked(rows.assign(**{column: cells}), path, companions_of(path.read_bytes()))

    def steal(self, share: float = 1) -> Path:
        """A file of the honest submission put into the other one, its scores better."""
        source = self.victim(self.honest)
        name = source.relative_to(self.honest / "records")
        target = self.evil / "records" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        rows = pd.read_parquet(source)
        rows["value"] = rows["value"] + share
        write_checked(rows, target)
        return target


def forge_rows(siege: Siege) -> str:
    """Rows of a file are of the honest backbone, once more, or of another file's task."""
    path, draw = siege.victim(), siege.draw
    rows = pd.read_parquet(path)
    way = draw.choice(
        ("backbone", "task", "dataset", "protocol", "transform", "tap", "twice", "moved", "turned")
    )
    some = rows.index[draw.randrange(len(rows)) :]
    if way == "twice":
        again = rows.loc[some].assign(value=100.0, date="2026-11-20T10:00:00+00:00")
        write_checked(pd.concat([rows, again], ignore_index=True), path)
    elif way in ("moved", "turned"):
        place = Path("mini-fs--mini-dino" if way == "turned" else "mini-fs") / path.name
        target = siege.evil / "records" / (place if draw.random() < 0.5 else place.with_name("x.parquet"))
        target.parent.mkdir(parents=True, exist_ok=True)
        first = "mini-fs" if way == "turned" else EVIL
        write_checked(rows.assign(backbone=first, other="mini-dino" if way == "turned" else ""), target)
    else:
        others = {"backbone": "mini-dino", "tap": "1+2"}
        rows.loc[some, way] = others.get(way, "knn" if rows[way].iloc[0] != "knn" else "davis")
        if len(some) == len(rows):
            rows.loc[rows.index[0], way] = others.get(way, "fewshot")
        if len(rows) == 1:
            rows = pd.concat([rows, rows.assign(layer=7, backbone="mini-dino")])
        write_checked(rows, path, companions_of(path.read_bytes()))
    return f"rows {way} of {path.name} from {some[0]}"


def overwrite(siege: Siege) -> str:
    """The honest result again, a little or much better, newer or of a forged day."""
    share = siege.draw.choice((0.1, 0.4, 0.49, 5, 60))
    path = siege.steal(share)
    siege.change(path, date=siege.draw.choice(("2026-11-26T10:00:00+00:00", "2001-01-01T00:00:00+00:00")))
    _say(siege.evil, date=siege.draw.choice(("2001-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00")))
    return f"{path.parent.name}/{path.name} better by {share}"


def forge_marks(siege: Siege) -> str:
    """A mark of one's own, a borrowed one, one that records claim, one of other bytes."""
    draw, way = (
        siege.draw,
        siege.draw.choice(("claim", "inside", "copied", "linked", "changed", "nested", "word")),
    )
    names = [path.relative_to(siege.evil / "records").as_posix() for path in siege.evil.rglob("*.parquet")
             if path.is_relative_to(siege.evil / "records")]  # fmt: skip
    marks = siege.repository / "verified"
    if way == "claim":
        siege.change(
            siege.victim(), claim=draw.choice(("verified", "authors", "verified here", "")) or "verified"
        )
    elif way == "inside":
        (siege.evil / "verified").mkdir()
        (siege.evil / "verified" / f"{siege.evil.name}.json").write_text(json.dumps({"measured": names}))
        _say(siege.evil, verified=True) if draw.random() < 0.5 else None
        (siege.evil / "verified" / "link").symlink_to(marks)
    elif way == "copied":
        shutil.copyfile(marks / "honest.json", marks / f"{siege.evil.name}.json")
        siege.change(siege.victim(), claim="verified")
    elif way == "linked":
        shutil.rmtree(siege.evil)
        siege.evil.symlink_to(siege.honest)
    elif way == "changed":
        mark_verified(siege.evil, names)
        siege.value(siege.victim(), "value", draw.uniform(90, 100))
        return "marked, then changed and not signed"
    elif way == "nested":
        sender = siege.evil / "submissions" / "x"
        shutil.copytree(siege.evil, siege.evil.with_name(".x"))
        siege.evil.with_name(".x").rename(_made(sender))
        shutil.copytree(marks, siege.evil / "verified")
        (siege.evil / "records").rename(siege.evil / "submissions" / "records")
    else:
        _say(siege.evil, claim=draw.choice(("verified", "verified here", "run here", "", None, ["authors"])))
    return f"mark {way}"


def forge_names(siege: Siege) -> str:
    """Names that read like others', that are paths, or the pages of something else."""
    draw, column = siege.draw, siege.draw.choice(("backbone", "suite", "task", "dataset", "protocol", "name"))
    base = {"backbone": "mini-fs", "suite": "standard", "task": "knn", "dataset": "imagenet"}.get(
        column, "honest"
    )
    base = "standard" if column == "protocol" else base
    place = draw.randrange(len(base) + 1)
    odd = (
        base[:place] + draw.choice(LOOKALIKES) + base[place:],
        draw.choice(PATHS),
        base.upper(),
        base.title(),
    )
    name = draw.choice(odd)
    if column == "name":
        name = name.replace("/", "") or "x!"
        name = (
            f"{name}!" if name in (".", "..", *(path.name for path in siege.evil.parent.iterdir())) else name
        )
        siege.evil.rename(siege.evil.with_name(name if not name.startswith(".") else f"!{name}"))
        return f"submission {name!r}"
    _rename(siege, column, name)
    return f"{column} {name!r}"


def share_pages(siege: Siege) -> str:
    """A suite whose page is that of the honest one, of its parts, or of the site."""
    names = (
        "standard/",
        "standard.inside",
        "standard.cost",
        "standard.held-out",
        "index",
        "changes",
        "README",
    )
    names += (
        "Standard",
        "STANDARD",
        "standard!",
        "-standard",
        "submissions",
        "standard:",
        "CHANGES",
        "standard,",
    )
    name = siege.draw.choice(names)
    for path in (siege.evil / "records").rglob("*.parquet"):
        siege.change(path, suite=f"standard\n{name}" if siege.draw.random() < 0.3 else name)
    return f"suite {name!r}"


def forge_dates(siege: Siege) -> str:
    """Days of the future and of long ago, and what is none."""
    draw = siege.draw
    days = (
        "2099-01-01T00:00:00+00:00",
        "2027-06-01",
        "yesterday",
        "",
        "9999-12-31T23:59:59+00:00",
        "2026-13-01",
    )
    day = draw.choice((*days, f"{draw.randrange(2027, 9999)}-0{draw.randrange(1, 9)}-01T00:00:00+00:00"))
    if draw.random() < 0.4:
        _say(siege.evil, date=draw.choice((day, "2026-1-3T00:00:00+00:00", 7, None)))
        return f"manifest of {day!r}"
    siege.value(siege.victim(), "date", day)
    return f"record of {day!r}"


def forge_links(siege: Siege) -> str:
    """A link, a device, a pipe or a loop in place of a file or a folder."""
    draw = siege.draw
    targets = (
        "/dev/zero",
        "/etc/passwd",
        "..",
        ".",
        "nowhere",
        str(siege.honest),
        str(siege.honest / MANIFEST),
    )
    target = draw.choice(targets)
    paths = sorted(path for path in siege.evil.rglob("*") if not path.is_symlink())
    path = draw.choice([*paths, siege.evil / MANIFEST, siege.evil / MANIFEST, siege.evil])
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if draw.random() < 0.2 and path != siege.evil:
        os.mkfifo(path)
        return f"pipe {path.name}"
    path.symlink_to(target)
    return f"{path.name} leads to {target}"


FIELDS: Mapping[str, tuple[object, ...]] = {
    "depth": (-1, 10**6, 10**18, "12", 1.5, None),
    "layer": (-2, 10**9, 10**18, "x"),
    "other_layer": (10**6, -5),
    "head": (-7, 10**8, None),
    "input_size": (10**6, -224, None),
    "n": (-1, 10**15, 0.5),
    "value": (float("inf"), -float("inf"), "97", [1.0], True),
    "ci_low": (float("inf"), "0", 1000.0),
    "ci_high": (-float("inf"), -1000.0),
    "chosen": (float("inf"), "all"),
    "dtype": ("float8", "", "float32 ", "x" * 5000, 32),
    "tap": ("blok", "1+x", "1+" * 3000 + "1", f"1+{10**9}", 3, "+"),
    "pooling": ("cls\u200b", "x" * 5000, 1, "a\nb", None),
    "metric": ("top-1 ", "t\u043ep-1", "x" * 300, None),
    "family": ("random", "pixels", "F\u0405", "x" * 300),
    "unit": ("\u202eimages", 5),
    "suite": ("\n".join(f"s{number}" for number in range(500)), "", "\n\n"),
    "coverage": ("x" * 10_000, 7, None),
    "reason": ("x" * 10_000, None),
    "revision": ("\x1b[2J", "x" * 5000, None),
    "trained": ("yes", 1, None),
    "partial": ("no", None),
    "seconds": (float("inf"), "long"),
    "version": ("9" * 5000, "\u0661"),
}


def forge_fields(siege: Siege) -> str:
    """A field of a value or kind that no run writes."""
    column = siege.draw.choice([*FIELDS])
    value = siege.draw.choice(FIELDS[column])
    path = siege.victim()
    rows = pd.read_parquet(path)
    if siege.draw.random() < 0.1:
        write_checked(rows.drop(columns="metric"), path)
        return "no column metric"
    rows[column] = rows[column].astype(object)
    rows[column] = [value] * len(rows)
    write_checked(rows, path, companions_of(path.read_bytes()))
    return f"{column} {str(value)[:40]!r}"


def forge_manifest(siege: Siege) -> str:
    """A manifest that is deep, large, twice, of other kinds, or replaces what it may not."""
    path, draw = siege.evil / MANIFEST, siege.draw
    said = json.loads(path.read_text())
    changes = {
        "deep": "[" * 100_000,
        "large": " " * 2**25 + "{}",
        "twice": path.read_text().replace('"claim"', '"claim": "authors", "claim"', 1),
        "none": "",
        "binary": "\0" * 100,
        "list": "[]",
        "digits": json.dumps(said).replace("1", "9" * 5000, 1),
    }
    fields: Mapping[str, tuple[object, ...]] = {
        "results_version": ("1", 2, None, True),
        "layerboard": (1, "\u202e", "x" * 999),
        "partial": (1, "no"),
        "weights": ([], {"a": 1}, {}),
        "files": ({}, {"x": "y"}, None),
        "replaces": (1, "../honest", "h\u043enest"),
    }
    way = draw.choice([*changes, *fields, *fields])
    if way in changes:
        path.write_text(changes[way])
    else:
        path.write_text(json.dumps(said | {way: draw.choice(fields[way])}))
    return f"manifest {way}, not signed"


def forge_formulas(siege: Siege) -> str:
    """Cells that a spreadsheet would compute."""
    formula, column = (
        siege.draw.choice(FORMULAS),
        siege.draw.choice(("backbone", "dataset", "suite", "metric", "task")),
    )
    _rename(siege, column, f"{formula}{siege.draw.randrange(99)}")
    return f"{column} {formula!r}"


def forge_facts(siege: Siege) -> str:
    """Something else about a backbone that is there, or a floor that is none."""
    draw = siege.draw
    facts = {"depth": 40, "family": "MAE", "trained": False}
    column = draw.choice([*facts])
    path = siege.evil / "records" / EVIL / "fewshot.imagenet.standard.parquet"
    rows = pd.read_parquet(siege.victim(siege.evil)).assign(
        task="fewshot", other="", dataset="imagenet", tap="block"
    )
    rows = rows.assign(
        metric=[f"top1-{number}shot" for number in range(len(rows))], transform="", protocol="standard"
    )
    name = draw.choice(("mini-fs", "mini-dino", EVIL))
    rows = rows.assign(
        backbone=name, analysis=False, family={"mini-fs": "FS", "mini-dino": "DINO"}.get(name, "random")
    )
    rows = rows.assign(**({column: facts[column]} if name != EVIL else {"trained": draw.random() < 0.5}))
    target = path.parent.with_name(name) / path.name
    write_checked(rows, target)
    return f"{name} with {column} {facts[column]}"


def forge_companions(siege: Siege) -> str:
    """Items and arrays that are none, are large, or are of others; digests and lists that are none."""
    draw = siege.draw
    path = draw.choice(sorted((siege.evil / "records" / EVIL).glob("*.parquet")))
    items = siege.evil / "items" / EVIL / path.name
    junk = {
        "text": b"no parquet",
        "empty": b"",
        "table": _parquet(pa.table({"a": [1]})),
        "bomb": _parquet(pa.table({"layer": pa.array(np.ones(3 * 10**7, np.int8))})),
        "columns": _parquet(pa.table({name: ["x"] for name in ("layer", "tap", "pooling", "unit", "key")})),
    }
    way = draw.choice([*junk, "named", "digest", "number", "deep"])
    rows = pd.read_parquet(path)
    items.parent.mkdir(parents=True, exist_ok=True)
    if way in junk:
        items.write_bytes(junk[way])
        write_checked(rows, path, {"items": file_digest(items)})
        return f"items {way} of {path.name}"
    beside: dict[str, object] = dict(companions_of(path.read_bytes()))
    beside |= {"named": {"../x": "0"}, "digest": {"items": draw.choice(("0" * 32, 7, None))}}.get(way, {})
    if way in ("number", "deep"):
        _with_metadata(rows, path, b"7" if way == "number" else b"[" * 100_000)
    else:
        write_checked(rows, path, beside)  # type: ignore[arg-type]
    return f"companions {way} of {path.name}"


ATTACKS: tuple[Callable[[Siege], str], ...] = (
    *(forge_rows, overwrite, forge_marks, forge_names, share_pages, forge_dates, forge_links, forge_fields),
    *(forge_manifest, forge_formulas, forge_facts, forge_companions),
)
UNSIGNED = ("not signed", "verified here", "manifest of")


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _parquet(table: pa.Table) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _with_metadata(rows: pd.DataFrame, path: Path, companions: bytes) -> None:
    """Records with other metadata than text of digests."""
    dumps = checksum.json.dumps
    checksum.json.dumps = lambda _: companions.decode()  # type: ignore[assignment]
    try:
        write_checked(rows, path)
    finally:
        checksum.json.dumps = dumps  # type: ignore[assignment]


def _say(folder: Path, **fields: object) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _rename(siege: Siege, column: str, name: str) -> None:
    """Give all records another name, and the files the paths that follow from it."""
    for path in sorted((siege.evil / "records").rglob("*.parquet")):
        rows = pd.read_parquet(path)
        rows[column] = name
        if column == "backbone":
            rows["other"] = rows["other"].where(rows["other"] == "", name)
        row = rows.iloc[0]
        key = task_key(row["task"], row["dataset"], row["protocol"], row["transform"], "+" in row["tap"])
        names = [each for each in (row["backbone"], row["other"]) if each]
        target = siege.evil / "records" / scored_path(key, *names)
        beside = companions_of(path.read_bytes())
        path.unlink()
        write_checked(rows, target)
        for kind in beside:
            shutil.rmtree(siege.evil / kind, ignore_errors=True)


def sign(folder: Path) -> None:
    """Let the manifest say what the files are now, as far as they can be read."""
    weights: dict[str, set[str]] = {}
    try:
        files = digests_of(folder)
        for path in sorted((folder / "records").rglob("*.parquet")):
            for name, part in pd.read_parquet(path).groupby("backbone")["revision"]:
                weights.setdefault(str(name), set()).update(map(str, part))
        _say(folder, files=files, weights={name: ", ".join(sorted(each)) for name, each in weights.items()})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # what cannot be read cannot be signed


def honest_part(reference: Reference, folder: Path) -> Path:
    """A few results of the reference, so that hundreds of attacks take minutes."""
    for path in (reference.place / "out").rglob("*.*"):
        name = path.relative_to(reference.place / "out")
        is_kind = name.parts[0] in ("records", "items", "arrays")
        is_task = name.name.startswith(("knn", "davis", "cka", "attention"))
        if is_kind and is_task and name.parts[1] in ("mini-fs", "mini-dino", "mini-dino--mini-fs"):
            shutil.copyfile(path, _made(folder / "honest" / name))
    for path in sorted((folder / "honest" / "records").rglob("*.parquet")):
        beside = companions_of(path.read_bytes())
        beside.pop("examples", None)
        write_checked(pd.read_parquet(path), path, beside)
    return folder / "honest"


def evil_of(honest: Path, folder: Path) -> Path:
    """A submission of a further backbone, with the numbers of an honest one, that can be accepted."""
    for path in sorted((honest / "records" / "mini-dino").glob("*.parquet")):
        if path.name.startswith(("knn", "davis")):
            rows = pd.read_parquet(path).assign(backbone=EVIL, family="other")
            target = folder / "out" / "records" / safe_name(EVIL) / path.name
            items = honest / "items" / "mini-dino" / path.name
            shutil.copyfile(items, _made(folder / "out" / "items" / EVIL / path.name))
            write_checked(rows, target, {"items": file_digest(items)})
    options = {"to": folder / "evil", "name": EVIL, "partial": True}
    return layerboard.submit(folder / "out", **options).paths[0].parent


def standing(repository: Path) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The results of a repository of honest backbones, with who verified them, and what was left out."""
    found = Repository.read(repository, known=known_names())
    results = found.results(len(found.submissions)).values()
    kept = {
        each.name.as_posix(): each.records.reset_index(drop=True)
        for each in results
        if each.name.parts[0].startswith("mini-")
    }
    every = found.marked(pd.concat([each.records for each in results], ignore_index=True))
    return {**kept, "": every}, list(found.left_out)


def _unlike(found: dict[str, pd.DataFrame], wanted: dict[str, pd.DataFrame]) -> str:
    for name, rows in wanted.items():
        if name and not rows.equals(found.get(name)):
            return f"the honest {name} is another"
    there, before = ({*_claims(each[""])} for each in (found, wanted))
    return "" if before <= there else "the honest mark is another"


def _claims(records: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    return records[["backbone", "other", "task", "claim"]].itertuples(index=False, name=None)


def _formulas(found: dict[str, pd.DataFrame]) -> str:
    rows = csv.reader(StringIO(csv_text(tidy_records(found[""].assign(seen="")))))
    cells = [cell for row in rows for cell in row]
    return next((f"{cell} is a formula" for cell in cells if cell[:1] in "=@\t" and cell), "")


def besiege(reference: Reference, folder: Path, times: int, seed: int = 0) -> list[Count]:
    """Attack a repository with submissions of each kind of attack, and read and verify it.

    What is wanted: a sentence about it from `verify` or in what the site leaves out, and the honest numbers
    and marks as they were; at the end the site of a repository with many of them, the honest page as it was.
    """
    counts, draw = [], random.Random(seed)
    repository = folder / "repository"
    sent = layerboard.submit(honest_part(reference, folder), to=repository, name="honest", partial=True)
    honest = sent.paths[0].parent
    names = [
        name.removeprefix("records/") for name in digests_of(honest) if name.startswith("records/mini-fs/")
    ]
    mark_verified(honest, names)
    model = evil_of(honest, folder / "model")
    wanted, left_out = standing(repository)
    assert not left_out
    assert not problems_of(model)
    page = _honest_page(repository, folder / "before")
    together = folder / "together"
    shutil.copytree(repository, together)
    for attack in ATTACKS:
        count = Count(f"attacks: {attack.__name__.replace('_', ' ')}")
        for number in range(times):
            name = f"{EVIL}-{attack.__name__}-{number}"
            siege = Siege(repository, honest, repository / "submissions" / name, draw)
            shutil.copytree(model, siege.evil)
            before = {*siege.evil.parent.iterdir()} - {siege.evil}
            title = attack(siege)
            (evil,) = {*siege.evil.parent.iterdir()} - before or {siege.evil}
            if not evil.is_symlink() and not any(word in title for word in UNSIGNED):
                sign(evil)
            count.note(title, _answer(siege, evil, wanted))
            if number % 6 == 0 and not evil.is_symlink() and "pipe" not in title:
                shutil.copytree(evil, together / "submissions" / evil.name, symlinks=True)
            evil.unlink() if evil.is_symlink() else shutil.rmtree(evil)
            for path in (repository / "verified").glob("*"):
                path.unlink() if path.name != "honest.json" else None
        counts.append(count)
    count = Count("attacks: the site of many of them")
    try:
        problem = "" if _honest_page(together, folder / "after") == page else "the honest page is another"
    except Exception as error:  # whatever stops it
        problem = f"{type(error).__name__}: {str(error)[:300]}"
    count.note("together", problem)
    return [*counts, count]


def _answer(siege: Siege, evil: Path, wanted: dict[str, pd.DataFrame]) -> str:
    """What is wrong with how an attack was answered; "" if nothing is."""
    try:
        found, left_out = standing(siege.repository)
        said = left_out or problems_of(evil)  # which reads it in the same way
    except Exception as error:  # whatever is raised
        return f"{type(error).__name__}: {str(error)[:200]}"
    if unlike := _unlike(found, wanted) or ("" if left_out else _formulas(found)):
        return unlike
    if verified_results(siege.repository, evil) and not left_out:
        return "it has a mark"
    return "" if said else "nothing was said"


def _honest_page(repository: Path, site: Path) -> list[str]:
    """What a site says of the honest backbones: their lines of the tables, and the page of the submission."""
    layerboard.report(output=repository, site=site)
    lines = [
        line for path in sorted(site.glob("standard*.csv")) for line in path.read_text().splitlines()
        if line.startswith("mini-") and EVIL not in line
    ]  # fmt: skip
    return [",".join(line.split(",")[:16]) for line in lines] + [
        (site / "submissions" / "honest.html").read_text().split("</style>")[-1]
    ]
