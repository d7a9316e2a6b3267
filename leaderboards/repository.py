"""A results repository: its submissions by date, and the changes between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.check import tidy_records
from layerboard.leaderboards.merge import StoredResult, merged
from layerboard.leaderboards.pages.tidy import TIDY
from layerboard.leaderboards.records.manifest import SUBMISSIONS
from layerboard.leaderboards.submission import Submission, read_submission
from layerboard.zoo.errors import InputError, shortened, some

COLUMN = ["backbone", "task", "dataset", "protocol", "data", "metric"]  # a backbone's cell of the leaderboard
EVERY = [*COLUMN, "layer", "tap", "pooling"]  # every score behind them


@dataclass(frozen=True, eq=False)
class Repository:
    """The submissions of a results repository, the earliest first."""

    submissions: Sequence[Submission]
    start: int  # number of submissions before those whose changes are listed

    @classmethod
    def read(cls, folder: Path, since: str | None = None) -> "Repository":
        """Read all submissions; changes are those since a day or a submission, or of the last one alone.

        Raises InputError if ``since`` matches none, or if a submission has changed since it was made.
        """
        below = folder / SUBMISSIONS
        paths = [path for path in below.iterdir() if path.is_dir() and path.name[0] != "."]
        submissions = [read_submission(path) for path in paths]
        for each in submissions:
            if each.problems:
                raise InputError(f"{each.folder} is not as it was submitted: {each.problems[0]}")
        if not submissions:
            raise InputError(f"expected submissions in {below}, found none; `submit` writes one")
        submissions.sort(key=lambda each: (each.manifest.date, each.name))
        names = [each.name for each in submissions]
        if since is None or since in names:
            return cls(submissions, len(names) - 1 if since is None else names.index(since) + 1)
        try:
            day = date.fromisoformat(since).isoformat()
        except ValueError:
            expected = f"a day such as 2026-01-31, or one of {some(names[::-1])}"
            raise InputError(f"--since takes {expected}; found {shortened(since)}") from None
        return cls(submissions, sum(each.manifest.date < day for each in submissions))

    def results(self, count: int, left_out: list[str] | None = None) -> dict[Path, StoredResult]:
        """The results of the first submissions by name, without those that one of them replaces.

        A submission that contradicts an earlier one is left out, and the reason is added to ``left_out``.
        """
        first = self.submissions[:count]
        replaced = {each.manifest.replaces for each in first}
        counted = (each.results for each in first if each.name not in replaced)
        return merged(counted, [] if left_out is None else left_out)

    def changes(self, start: int, stop: int, keys: Sequence[str] = COLUMN) -> pd.DataFrame:
        """Scores that differ between the first ``start`` and the first ``stop`` submissions.

        With the keys `COLUMN`, one row for the best layer of a backbone in a column; with `EVERY`, one for
        each layer. ``change`` is new, gone or moved; ``value_before`` and ``value_now``, and with `COLUMN`
        ``layer_before`` and ``layer_now``, are text, "" if missing.
        """
        before, now = self.results(start), self.results(stop)
        frames = []
        for these, others in ((before, now), (now, before)):
            frame = _scores([each.records for name, each in these.items() if others.get(name) is not each])
            frame = frame if "layer" in keys else frame[frame["best"] == "True"]
            frames.append(frame[[*dict.fromkeys([*keys, "layer", "value"])]])
        rows = frames[0].merge(frames[1], "outer", [*keys], suffixes=("_before", "_now"), indicator="change")
        words = {"left_only": "gone", "right_only": "new", "both": "moved"}
        rows = rows.assign(change=rows["change"].map(words).astype(str)).fillna("")
        return rows[rows["value_before"] != rows["value_now"]].reset_index(drop=True)


def _scores(records: Sequence[pd.DataFrame]) -> pd.DataFrame:
    tidy = tidy_records(pd.concat(records)) if records else pd.DataFrame(columns=TIDY, dtype=str)
    return tidy[tidy["other"] == ""]
