"""A results repository: its submissions as they were accepted, and the changes between them."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.display import page_problem
from layerboard.leaderboards.board.tidy import TIDY
from layerboard.leaderboards.exchange.check import tidy_records
from layerboard.leaderboards.exchange.merge import Key, StoredResult, require_same_result
from layerboard.leaderboards.exchange.submission import Submission, read_submission
from layerboard.leaderboards.records.fields import Known, names_differing_in_case
from layerboard.leaderboards.records.key import keys_of
from layerboard.leaderboards.records.manifest import LONGEST_JSON, MANIFEST, SUBMISSIONS, verified_results
from layerboard.leaderboards.records.record import VERIFIED
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError, first_line, shortened, some
from layerboard.zoo.reading import read_regular

COLUMN = ["backbone", "task", "dataset", "protocol", "data", "metric"]  # a backbone's cell of the leaderboard
EVERY = [*COLUMN, "layer", "tap", "pooling"]  # every score behind them
ACCEPTED = "accepted.txt"  # names of submissions in the order in which they were accepted, one a line

Results = dict[Key, StoredResult]


@dataclass(frozen=True, eq=False)
class Repository:
    """The submissions of a results repository that count, in the order in which they were accepted."""

    submissions: Sequence[Submission]
    start: int  # number of submissions before those whose changes are listed
    left_out: Sequence[str] = ()  # a sentence for each submission that does not count

    @classmethod
    def read(cls, folder: Path, since: str | None = None, known: Known = Known()) -> "Repository":  # noqa: B008
        """Read all submissions; changes are those since a day or a submission, or of the last one alone.

        A submission is left out, with a sentence, if it is damaged, was changed since it was made, says what
        no run writes, or contradicts one that was accepted before. ``known`` are the names of this package.

        Raises InputError if ``since`` matches none, or if no submission is left.
        """
        accepted, left_out = cls((), 0), list[str]()
        for path in _in_order(folder):
            try:
                submission = _read(path, folder, known)
                accepted.require_fitting(submission, known)
            except InputError as error:
                left_out.append(f"{path.name}: {error}")
                continue
            if submission.manifest.replaces not in {each.name for each in accepted.submissions}:
                submission = replace(submission, manifest=replace(submission.manifest, replaces=""))
            accepted = cls((*accepted.submissions, submission), 0)
        if not accepted.submissions:
            below, why = folder / SUBMISSIONS, f" that counts: {left_out[0]}" if left_out else ""
            write = "`submission write` writes one"
            raise InputError(f"expected submissions in {below}, found none{why}; {write}")
        return cls(accepted.submissions, _start(accepted.submissions, since), left_out)

    def without(self, submission: Submission, reason: str) -> "Repository":
        """The repository without a submission, for a reason; raises InputError if none is left."""
        others = [each for each in self.submissions if each is not submission]
        if not others:
            raise InputError(f"no submission is left: {submission.name}: {reason}")
        return Repository(
            others, min(self.start, len(others)), (*self.left_out, f"{submission.name}: {reason}")
        )

    def require_fitting(self, submission: Submission, known: Known) -> None:
        """Raise InputError for a submission that cannot be accepted beside those that are there.

        It may repeat a result, but neither change one, nor be called nearly as another, nor say something
        else of a backbone, nor have the page of another.
        """
        names = {("submission", each.name) for each in self.submissions}
        if problem := names_differing_in_case({("submission", submission.name)}, names):
            raise InputError(problem)
        earlier = _counted(self.submissions)
        earlier.pop(submission.manifest.replaces, None)
        there = [result for results in earlier.values() for result in results]
        mine = submission.results
        every = {name for result in (*there, *mine) for name in result.names}
        named = {name for result in there for name in result.names}
        if problem := names_differing_in_case(every - named, named | known.names):
            raise InputError(problem)
        suites = {name for what, name in every if what == "suite"}
        if problem := page_problem(suites) or _other_facts(there, mine):
            raise InputError(problem)
        standing = _standing(earlier.values())
        for result in submission.results:
            if result.key in standing:
                require_same_result(standing[result.key], result)

    def results(self, count: int) -> Results:
        """The results of the first submissions, without those that a later one of them replaces.

        Of equal ones the first that was accepted stands.
        """
        return _standing(_counted(self.submissions[:count]).values())

    def marked(self, records: pd.DataFrame) -> pd.DataFrame:
        """Records of all results, of which those that the repository has verified say so."""
        every = [result.records for result in self.results(len(self.submissions)).values()]
        verified = {key for rows in every if (rows["claim"] == VERIFIED).all() for key in keys_of(rows)}
        is_verified = pd.Series([key in verified for key in keys_of(records)], index=records.index)
        return records.assign(claim=records["claim"].mask(is_verified, VERIFIED))

    def changes(self, start: int, stop: int, keys: Sequence[str] = COLUMN) -> pd.DataFrame:
        """Scores that differ between the first ``start`` and the first ``stop`` submissions.

        With the keys `COLUMN`, one row for the best layer of a backbone in a column; with `EVERY`, one for
        each layer. ``change`` is new, gone or moved; ``value_before`` and ``value_now``, and with `COLUMN`
        ``layer`` and ``pooling`` with the same endings, are text, "" if missing.
        """
        before, now = self.results(start), self.results(stop)
        frames = []
        for these, others in ((before, now), (now, before)):
            frame = _scores([each.records for name, each in these.items() if others.get(name) is not each])
            frame = frame if "layer" in keys else frame[frame["best"] == "True"]
            frames.append(frame[[*dict.fromkeys([*keys, "layer", "pooling", "value"])]])
        rows = frames[0].merge(frames[1], "outer", [*keys], suffixes=("_before", "_now"), indicator="change")
        words = {"left_only": "gone", "right_only": "new", "both": "moved"}
        rows = rows.assign(change=rows["change"].map(words).astype(str)).fillna("")
        return rows[rows["value_before"] != rows["value_now"]].reset_index(drop=True)


def _scores(records: Sequence[pd.DataFrame]) -> pd.DataFrame:
    tidy = tidy_records(pd.concat(records)) if records else pd.DataFrame(columns=TIDY, dtype=str)
    return tidy[tidy["other"] == ""]


def accepted_names(folder: Path) -> list[str]:
    """The names in `ACCEPTED` of a repository, in order; none if it has no such file."""
    path = folder / ACCEPTED
    try:
        text = "" if path.is_symlink() else read_regular(path, LONGEST_JSON).decode()
    except FileNotFoundError:
        text = ""
    except (OSError, ValueError) as error:
        expected = f"expected the names of submissions, one a line, in {path}"
        raise InputError(f"{expected} but cannot read it: {first_line(error)}; write it again") from error
    return [*dict.fromkeys(filter(None, map(str.strip, text.splitlines())))]


def add_accepted(folder: Path, name: str) -> None:
    """Add a submission to the end of `ACCEPTED`, after any others that are not in it yet."""
    others = [path.name for path in _in_order(folder) if path.name != name]
    write_whole(folder / ACCEPTED, "".join(f"{each}\n" for each in (*others, name)))


def _in_order(folder: Path) -> list[Path]:
    """Folders of submissions as they were accepted; those that `ACCEPTED` lacks are last, as they arrived.

    What a submission says of its own date is not asked.
    """
    places = {name: rank for rank, name in enumerate(accepted_names(folder))}
    entries = [path for path in (folder / SUBMISSIONS).iterdir() if not path.name.startswith(".")]
    paths = [path for path in entries if path.is_symlink() or path.is_dir()]
    arrivals = dict.fromkeys(paths, 0)  # when the manifest came to this machine, in nanoseconds
    for path in paths:
        with suppress(OSError):
            arrivals[path] = os.lstat(path / MANIFEST).st_ctime_ns
    return sorted(paths, key=lambda path: (places.get(path.name, len(places)), arrivals[path], path.name))


def _read(path: Path, folder: Path, known: Known) -> Submission:
    """A submission that is as it was submitted, with the repository's marks."""
    submission = read_submission(path, known)
    if submission.problems:
        raise InputError(f"it is not as it was submitted: {submission.problems[0]}")
    verified = verified_results(folder, path)
    results = [
        replace(result, records=result.records.assign(claim=VERIFIED))
        if result.name.as_posix() in verified
        else result
        for result in submission.results
    ]
    return replace(submission, results=results)


def _counted(submissions: Sequence[Submission]) -> dict[str, Sequence[StoredResult]]:
    """The results of submissions by their names, without those that a later one replaces."""
    counted: dict[str, Sequence[StoredResult]] = {}
    for each in submissions:
        counted.pop(each.manifest.replaces, None)
        counted[each.name] = each.results
    return counted


def _standing(every: Iterable[Sequence[StoredResult]]) -> Results:
    standing: Results = {}
    for results in every:
        for result in results:
            standing.setdefault(result.key, result)
    return standing


def _other_facts(there: Iterable[StoredResult], mine: Iterable[StoredResult]) -> str:
    """What is said of a backbone that was said otherwise before, as a phrase; "" if nothing is."""
    known: dict[str, tuple[object, ...]] = {}
    for result in (*there, *mine):
        for name, *facts in sorted(result.facts):
            if (others := known.setdefault(name, tuple(facts))) != tuple(facts):
                pairs = zip(("family", "trained", "depth"), others, facts, strict=True)
                said = [f"{what} {before} and {now}" for what, before, now in pairs if before != now]
                return f"of {name} two things are said: {', '.join(said)}"
    return ""


def _start(submissions: Sequence[Submission], since: str | None) -> int:
    """The number of submissions before those since a day or a submission, or before the last one."""
    names = [each.name for each in submissions]
    if since is None or since in names:
        return len(names) - 1 if since is None else names.index(since) + 1
    try:
        day = date.fromisoformat(since).isoformat()
    except ValueError:
        expected = f"a day such as 2026-01-31, or one of {some(names[::-1])}"
        raise InputError(f"--since takes {expected}; found {shortened(since)}") from None
    later = (rank for rank, each in enumerate(submissions) if each.manifest.date >= day)
    return next(later, len(submissions))
