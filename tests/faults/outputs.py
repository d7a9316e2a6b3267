"""Output folders of others: forged records, exchanges, names that steer."""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.records.checksum import companions_of, write_checked
from layerboard.leaderboards.records.record import ABSENT, UNLIKE
from layerboard.zoo.errors import printable
from tests.faults.places import BACKBONES, Reference, reference_in
from tests.faults.trials import Effort, Trial
from tests.faults.wrong_options import Answer, answered

READERS = (
    ("leaderboard",),
    ("compare", *BACKBONES[:2]),
    ("compare", *BACKBONES[:2], "--layers", "same"),
    ("show",),
    ("recommend",),
    ("export", "csv"),
    ("export", "latex"),
    ("report",),
)
"""Commands that read an output folder, without it."""


REASONS = (UNLIKE, ABSENT, "not compared", "may be the best is not marked")


FIELDS: Mapping[str, tuple[object, ...]] = {
    "depth": (-1, 10**6, 10**18, "12", 1.5, None),
    "layer": (-2, 10**9, 10**18, "x"),
    "other_layer": (10**6, -5),
    "head": (-7, 10**8, None),
    "input_size": (10**6, -224, None),
    "n": (-1, 10**15, 0.5),
    "value": (float("inf"), -float("inf"), "97", [1.0], True),
    "ci_low": (float("inf"), "0", 1000.0),
    "chosen": (float("inf"), "all"),
    "dtype": ("float8", "", "float32 ", "x" * 5000, 32),
    "tap": ("blok", "1+x", "1+" * 3000 + "1", f"1+{10**9}", 3, "+"),
    "pooling": ("cls\u200b", "x" * 5000, 1, "a\nb", None),
    "metric": ("top-1 ", "t\u043ep-1", "x" * 300, None),
    "suite": ("\n".join(f"s{number}" for number in range(500)), "", "\n\n"),
    "coverage": ("x" * 100_000, 7, None),
    "revision": ("\x1b[2J", "x" * 5000, None),
    "trained": ("yes", 1, None),
    "partial": ("no", None),
    "seconds": (float("inf"), "long"),
    "date": ("2099-01-01T00:00:00+00:00", "yesterday", "", "9999-12-31T23:59:59+00:00", "2026-13-01", None),
    "backbone": ("mini-dnio", "../x", "/etc/passwd", "", None),
    "task": ("knn ", "davis", ""),
    "dataset": ("..", "other", None),
}
"""Values of fields, some of which no run writes, and others that no file of that name has."""


def disturb_outputs(folder: Path, effort: Effort) -> Iterator[Trial]:
    """Forge, exchange and rename in copies of what a run leaves, and read these."""
    reference = reference_in(folder.parent)
    for part in (forge_records, exchange_folders, name_steering):
        yield from part(reference, folder, effort)


def forge_records(reference: Reference, folder: Path, effort: Effort) -> Iterator[Trial]:
    """Give some rows of a file of records other values, or twice, and merge it with what a run wrote.

    What is wanted: one sentence, or the records of the run as they were.
    """
    draw = effort.draw()
    for number in range(effort.times):
        place = folder / f"forged-records-{number}"
        for name in ("a", "b"):
            shutil.copytree(reference.place / "out", place / name)
        victim = draw.choice(sorted((place / "b" / "records").rglob("*.parquet")))
        rows, beside = pd.read_parquet(victim), companions_of(victim.read_bytes())
        some = rows.index[draw.choice((0, draw.randrange(len(rows)))) :]
        column = draw.choice(("twice", *FIELDS))
        if column == "twice":
            rows = pd.concat([rows, rows.loc[some].assign(value=100.0)], ignore_index=True)
            title = f"{len(some)} rows twice"
        else:
            value = draw.choice(FIELDS[column])
            cells = [value if row in some else cell for row, cell in rows[column].items()]
            rows = rows.assign(**{column: pd.Series(cells, rows.index, dtype=object)})
            title = f"{column} {str(value)[:40]!r} in {len(some)} rows"
        with suppress(TypeError, ValueError, OverflowError):  # no such table can be written
            write_checked(rows, victim, beside)
            answer = answered(("merge", "a", "b", "--output", "together"), place)
            problem = answer.problem
            if not problem and answer.code != 2:
                problem = _unlike(place / "a", place / "together") if not answer.code else "exit code 1"
            yield Trial("forged records of merged folders", f"{title} of {victim.name}", problem)
        shutil.rmtree(place)


def _unlike(honest: Path, merged: Path) -> str:
    """Which records of a folder are others in a merged one, but for the suites that they are of."""
    for path in sorted((honest / "records").rglob("*.parquet")):
        before, after = (
            pd.read_parquet(each).drop(columns="suite") for each in (path, merged / path.relative_to(honest))
        )
        if not before.equals(after):
            return f"{path.name} is another"
    return ""


def exchange_folders(reference: Reference, folder: Path, effort: Effort) -> Iterator[Trial]:
    """Exchange folders or files of two backbones, and read what is there with a random command.

    What is wanted: a sentence or a reason, or the numbers as they were, perhaps without marks and pictures.
    """
    draw = effort.draw()
    usual: dict[tuple[str, ...], Answer] = {}
    for number in range(effort.times):
        words, place = draw.choice(READERS), folder / f"exchanged-{number}"
        if words not in usual:
            shutil.copytree(reference.place / "out", place / "out")
            usual[words] = _read(words, place)
            shutil.rmtree(place)
        shutil.copytree(reference.place / "out", place / "out")
        kind = draw.choice(("items", "arrays", "examples", "records"))
        below = place / "out" / kind
        two = draw.choice(sorted(_pairs(below, whole=draw.random() < 0.5)))
        _swap(*two)
        names = " and ".join(str(path.relative_to(below)) for path in two)
        answer = _read(words, place)
        problem = answer.problem or _unsaid(answer, usual[words])
        yield Trial("exchanged folders", f"{' '.join(words)} with exchanged {names} of {kind}", problem)
        shutil.rmtree(place)


def _pairs(below: Path, *, whole: bool) -> Iterator[tuple[Path, Path]]:
    """Two folders of backbones, or two files of one task."""
    folders = sorted(path for path in below.iterdir() if path.is_dir())
    for first in folders:
        for second in folders:
            if first < second and whole:
                yield first, second
            elif first < second:
                yield from (
                    (path, second / path.name) for path in first.iterdir() if (second / path.name).exists()
                )
    if not whole and len(folders) == 1:
        yield folders[0], folders[0]


def _swap(first: Path, second: Path) -> None:
    between = first.with_name("between")
    first.rename(between)
    if first != second:
        second.rename(first)
    between.rename(second)


def _read(words: tuple[str, ...], place: Path) -> Answer:
    """What a command says and writes about ``place/out``."""
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    answer = answered((*words, "-o", "out"), place)
    pages = [
        path.read_text()
        for path in sorted(place.rglob("*"))
        if path.suffix in (".csv", ".md", ".tex", ".html") and before.get(path) is None
    ]
    return Answer(answer.problem, answer.code, "\n".join((answer.said, *pages)).replace(str(place), ""))


def _unsaid(answer: Answer, usual: Answer) -> str:
    """What is wrong with other lines than usual; "" where a reason is given, or marks are lacking alone."""
    if answer.code == 2 or any(reason in answer.said for reason in REASONS):
        return ""
    known = [_words(line) for line in set(usual.said.splitlines())]
    fresh = set(answer.said.splitlines()) - set(usual.said.splitlines())
    for line in sorted(fresh):
        if re.search(r"\d", line) and not any(_words(line) <= each for each in known):
            return f"says something else without a reason: {line[:200]}"
    return ""


def _words(line: str) -> set[str]:
    """The words of a line, without marks of ties and the bytes of pictures."""
    return {*re.sub(r"\$\^\{\\approx\}\$|≈|<image [^>]*>", "", line).split()}


STEERING = (
    *("\x1b]0;owned\x07", "\x9b31m", "\x1b[2J", "\x08\x08", "\r", "\x7f", "\x00", "\x0b", "\x85"),
    *("\u202e", "\u2066", "\ufffe", "\x1bP1$r\x1b\\", "[red]"),
    *("<script>alert(1)</script>", "=1+1", "|", "`", "$(id)"),
)
"""What steers a terminal, the order of reading, or a page; and what only looks like it."""

NAMED = [
    "backbone",
    "family",
    "task",
    "dataset",
    "protocol",
    "coverage",
    "reason",
    "metric",
    "device",
    "suite",
    "version",
]
"""Columns of records that hold names."""


def name_steering(reference: Reference, folder: Path, effort: Effort) -> Iterator[Trial]:
    """Put characters that steer into a column of all records of a backbone, and read these with a command.

    What is wanted: a sentence or pages, none of which steers anything.
    """
    draw = effort.draw()
    for number in range(effort.times):
        words, place = draw.choice((*READERS, ("merge", "out", "out"))), folder / f"steering-{number}"
        shutil.copytree(reference.place / "out", place / "out")
        column, mark, backbone = draw.choice(NAMED), draw.choice(STEERING), draw.choice(BACKBONES)
        for path in sorted((place / "out" / "records" / backbone).rglob("*.parquet")):
            frame = pd.read_parquet(path)
            marked = frame[column].map(lambda text, mark=mark: f"{text[:2]}{mark}{text[2:]}")
            write_checked(frame.assign(**{column: marked}), path, companions_of(path.read_bytes()))
        answer = _read(words, place)
        problem = answer.problem or _steers(answer.said, mark)
        yield Trial(
            "control characters in names", f"{words[0]} with {mark!r} in {column} of {backbone}", problem
        )
        shutil.rmtree(place)


def _steers(said: str, mark: str) -> str:
    if found := sorted({*said} - {*printable(said)}):
        return f"steers by {found}"
    return "holds a script" if "script" in mark and mark in said else ""
