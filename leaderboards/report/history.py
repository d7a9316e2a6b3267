"""Pages of a results repository: boards, submissions, backbones over time, badges, and an Atom feed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_OID, uuid5

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import Plot
from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.blocks.display import fixed, place_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.charts.svg import svg_element
from layerboard.leaderboards.exchange.hub import model_indices
from layerboard.leaderboards.exchange.repository import COLUMN, EVERY, Repository
from layerboard.leaderboards.exchange.submission import Submission
from layerboard.leaderboards.findings.reproduce import answered, reproduction
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.files import RESULTS_VERSION, safe_name
from layerboard.leaderboards.records.manifest import MANIFEST
from layerboard.leaderboards.report.content import FIRST, MAYBE, SCORE, UNTESTED, WORSE, Report
from layerboard.leaderboards.report.packing import script_digest
from layerboard.leaderboards.report.page import ASSETS
from layerboard.leaderboards.report.table import SortedCell, best_parts, sorted_cell, sorted_heads
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.leaderboards.sections.published import AGREES, published_table
from layerboard.zoo.atomic import file_sha256
from layerboard.zoo.errors import counted
from layerboard.zoo.spec import entry_name

CHANGES = {"task": "words", "before": "numbers", "now": "numbers", "change": "words"}
SUBMISSIONS = {"submission": "words", "date": "words", "measured by": "words"}
BEST = {"task": "words", "score": "numbers", "layer": "words", "rank": "rank", "against the best": "words"}
"""Heads of tables, and how each is sorted."""

LETTER = 6.3  # approximate width of a letter of a badge in pixels


class _Change(NamedTuple):
    """What one submission changed of the scores of best layers."""

    submission: Submission
    number: int  # from 1
    rows: pd.DataFrame


class History:
    """A repository with what each of its submissions changed; its pages are files of a site by name."""

    def __init__(self, repository: Repository, reports: Sequence[Report], since: str = "") -> None:
        self.repository, self.reports = repository, reports
        self.submissions, start = repository.submissions, repository.start
        self.since = since or (self.submissions[start - 1].name if start else "the beginning")
        self.changes = [
            _Change(each, number, repository.changes(number - 1, number))
            for number, each in enumerate(self.submissions, start=1)
        ]

    @cached_property
    def backbones(self) -> list[str]:
        """Names of backbones with scores, in the order of tables."""
        every = [
            report.backbones.loc[report.backbones["backbone"].isin(report.best["backbone"]), "name"]
            for report in self.reports
        ]
        return [*dict.fromkeys(str(name) for names in every for name in names)]

    @cached_property
    def shared(self) -> dict[str, Any]:
        """What every page needs."""
        script = (ASSETS / "table.js").read_text(encoding="utf-8")
        parent = f"{self.submissions[0].folder.parent}{os.sep}"  # on this machine
        return {
            "policy": f"default-src 'none'; script-src {script_digest(script)}; style-src 'unsafe-inline'; "
            "base-uri 'none'; form-action 'none'",
            "style": Markup((ASSETS / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
            "script": Markup(script),  # noqa: S704 - our own file
            "version": RESULTS_VERSION,
            "newest": max(each.manifest.date for each in self.submissions),
            "submissions": self.submissions,
            "since": self.since,
            "AGREES": AGREES,
            "left_out": [reason.replace(parent, "") for reason in self.repository.left_out],
        }

    def pages(self) -> dict[str, str]:
        """Every file but the page and the CSV of each suite, to which they link."""
        repository, count = self.repository, len(self.submissions)
        latest = repository.changes(repository.start, count)
        size = f"{counted(count, 'submissions')}, {counted(len(self.backbones), 'backbones')}"
        pages = {
            "index.html": self._page("leaderboards", "", boards=[*self._boards()], **self._sent()),
            "changes.html": self._page("changes", "", **self._changed(latest)),
            "changes.csv": csv_text(repository.changes(repository.start, count, EVERY)),
            "feed.xml": self._feed(),
            "badge.svg": _badge(size),
        }
        for change in self.changes:
            sent = change.submission
            weights = [(self._linked(name, "../"), each) for name, each in sent.manifest.weights.items()]
            values = {"submission": sent, "replaced": self._replaced(sent), "weights": weights}
            values |= self._changed(change.rows, "../")
            pages[f"submissions/{sent.name}.html"] = self._page("submission", "../", **values)
        every = Board.of(pd.concat([report.board.records for report in self.reports]))
        cards = model_indices(every)
        for name in self.backbones:
            file, badge = f"backbones/{safe_name(name)}", _badge(self._standing(name))
            pages |= {f"{file}.html": self._backbone(name, badge, card=name in cards), f"{file}.svg": badge}
            pages |= {f"{file}.yaml": cards[name]} if name in cards else {}
        return pages

    def _page(self, template: str, up: str, **values: object) -> str:
        return filled(template, **(self.shared | {"up": up} | values))

    # ---- the boards -------------------------------------------------------------------------------------

    def _boards(self) -> Iterator[dict[str, Any]]:
        """Each suite, and the parts of its table if it has scores."""
        senders: dict[str, set[str]] = {}
        for result in self.repository.results(len(self.submissions)).values():
            senders.setdefault(str(result.records["backbone"].iloc[0]), set()).add(result.folder.name)
        for report in self.reports:
            board = report.board

            def who(row: Mapping[Any, Any], board: Board = board) -> SortedCell:
                name = str(row["name"])
                sent = ", ".join(each.name for each in self.submissions if each.name in senders.get(name, ()))
                return sorted_cell(board.measured_by.get(name, ""), note=sent)

            leading = {"backbone": lambda row: self._linked(str(row["name"]), ""), "measured by": who}
            parts = {} if report.best.empty else best_parts(report, leading)
            others = published_table(self._published[board.suite])
            yield {"suite": board.suite, "page": board.page, "parts": parts, "others": others}

    def _linked(self, name: str, up: str) -> SortedCell:
        """The cell of a backbone, which leads to its page if it has one."""
        address = f"{up}backbones/{quote(safe_name(name))}.html"
        return _link(address, name) if name in self.backbones else sorted_cell(name)

    def _sent(self) -> dict[str, Any]:
        """The table of all submissions, the newest first."""
        rows = [
            self._submission(each)
            + [sorted_cell(", ".join(names)) for names in (each.manifest.weights, each.tasks)]
            for each in reversed(self.submissions)
        ]
        return {"heads": sorted_heads(SUBMISSIONS | {"backbones": "words", "tasks": "words"}), "rows": rows}

    def _submission(self, each: Submission, up: str = "") -> list[SortedCell]:
        """The cells of a submission by the heads `SUBMISSIONS`."""
        name = _link(f"{up}submissions/{quote(each.name)}.html", each.name, self._replaced(each))
        return [name, sorted_cell(each.manifest.date[:10]), sorted_cell(each.measured)]

    def _replaced(self, submission: Submission) -> str:
        """Which submissions replaced one, as a phrase; "" for none."""
        others = [each.name for each in self.submissions if each.manifest.replaces == submission.name]
        return f"replaced by {', '.join(others)}" if others else ""

    def _changed(self, rows: pd.DataFrame, up: str = "") -> dict[str, Any]:
        """Changes of any backbones as a table, and the number of each kind."""
        changes = rows.to_dict("records")
        body = [[self._linked(row["backbone"], up), *_change_cells(row)] for row in changes]
        counts = rows["change"].value_counts().items()
        return {"heads": sorted_heads({"backbone": "words"} | CHANGES), "rows": body, "counts": [*counts]}

    # ---- one backbone -----------------------------------------------------------------------------------

    @cached_property
    def _ranked(self) -> list[tuple[Report, pd.DataFrame]]:
        """The reports, and their best layers with their ranks among so many.

        ``tested`` says whether backbones are compared in that column.
        """
        ranked = []
        for report in self.reports:
            columns = report.best.assign(tested=report.best["group"].isin([MAYBE, WORSE])).groupby("column")
            best = report.best.assign(
                rank=columns["value"].rank(method="min", ascending=False),
                among=columns["value"].transform("size"),
                tested=columns["tested"].transform("any"),
            )
            ranked.append((report, best))
        return ranked

    def _own(self, name: str) -> list[tuple[Report, pd.DataFrame]]:
        """The reports with scores of a backbone, and these of `_ranked`."""
        own = [(each, best[best["backbone"] == each.board.labels.get(name)]) for each, best in self._ranked]
        return [(report, rows) for report, rows in own if len(rows)]

    def _standing(self, name: str) -> str:
        """Among the best of how many tasks a backbone is, as its badge says."""
        best = pd.concat([rows for _, rows in self._own(name)])
        compared = best[best["tested"]]
        if compared.empty:
            return f"{counted(len(best), 'tasks')} measured"
        top = int(compared["group"].isin([FIRST, MAYBE]).sum())
        return f"among the best in {top} of {counted(len(compared), 'tasks')}"

    def _backbone(self, name: str, badge: str, *, card: bool) -> str:
        """The page of a backbone: its place, its submissions, its scores over time, numbers of others."""
        own = self._own(name)
        changes = [each._replace(rows=each.rows[each.rows["backbone"] == name]) for each in self.changes]
        steps = [
            [date, sent, *_change_cells(row)]
            for each in reversed(changes)
            for sent, date, *_ in [self._submission(each.submission, "../")]
            for row in each.rows.to_dict("records")
        ]
        sent = [
            [
                sorted_cell(f"{each.number}", left=False),
                *self._submission(each.submission, "../"),
                sorted_cell(weights),
            ]
            for each in reversed(changes)
            if (weights := each.submission.manifest.weights.get(name))
        ]
        facts = own[0][0].backbones.set_index("name").loc[name].to_dict()
        return self._page(
            "history",
            "../",
            name=name,
            file=safe_name(name),
            facts=facts,
            measured=next(who for report, _ in own if (who := report.board.measured_by.get(name, ""))),
            badge=Markup(badge),  # noqa: S704 - escaped where it is written
            card=card,
            boards=[(report.board, [*map(_best_cells, rows.to_dict("records"))]) for report, rows in own],
            best_heads=sorted_heads(BEST),
            sent_heads=sorted_heads({"no.": "numbers"} | SUBMISSIONS | {"weights": "words"}),
            sent=sent,
            step_heads=sorted_heads({"date": "words", "submission": "words"} | CHANGES),
            steps=steps,
            chart=_chart(name, changes),
            others=pd.concat([self._others(report, entry_name(name)) for report, _ in own]),
            literature=entry_name(name) if entry_name(name) in self._in_literature else "",
        )

    @cached_property
    def _published(self) -> dict[str, pd.DataFrame]:
        """Published numbers beside measured ones, by suite."""
        boards = (report.board for report in self.reports)
        return {each.suite: answered(reproduction(each), each.published, each.plain) for each in boards}

    def _others(self, report: Report, entry: str) -> pd.DataFrame:
        """Published numbers of a backbone of the registry, which is not named, beside measured ones."""
        frame = self._published[report.board.suite]
        return published_table(frame[frame["backbone"] == entry]).drop(columns="backbone", errors="ignore")

    @cached_property
    def _in_literature(self) -> set[str]:
        return {number.backbone for number in all_published()}

    # ---- the feed ---------------------------------------------------------------------------------------

    def _feed(self) -> str:
        """An Atom feed (RFC 4287) with an entry for each submission, whose id is made from its manifest."""
        digests = [file_sha256(each.submission.folder / MANIFEST) for each in self.changes]
        entries = [
            {"submission": each.submission, "id": _urn(digest), "counts": _counts(each.rows)}
            for each, digest in zip(self.changes, digests, strict=True)
        ]
        return filled("feed.xml", id=_urn(f"from {digests[0]}"), entries=entries[::-1], **self.shared)


def _urn(text: str) -> str:
    """An id that is always the same for a text."""
    return f"urn:uuid:{uuid5(NAMESPACE_OID, text)}"


def _counts(rows: pd.DataFrame) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in rows["change"].value_counts().items()) or "none"


def _link(address: str, text: str, note: str = "") -> SortedCell:
    return sorted_cell(Markup('<a href="{}">{}</a>').format(address, text), note, key=text)


def _change_cells(row: Mapping[Any, Any]) -> list[SortedCell]:
    """The cells of a change by the heads `CHANGES`."""
    sides = [
        sorted_cell(
            f"{fixed(float(value), 1)} ({row[f'layer_{side}']} {row[f'pooling_{side}']})" if value else "",
            left=False,
            key=value,
        )
        for side in ("before", "now")
        for value in [row[f"value_{side}"]]
    ]
    task = sorted_cell(f"{row['task']} {row['metric']}", f"{row['dataset']} ({row['protocol']})")
    return [task, *sides, sorted_cell(row["change"])]


def _best_cells(row: Mapping[Any, Any]) -> list[SortedCell]:
    """The cells of a best layer by the heads `BEST`."""
    return [
        sorted_cell(row["column"]),
        sorted_cell(row[SCORE], left=False, key=fixed(row["value"], 4)),
        sorted_cell(place_text(row["layer"], row["depth"], row["pooling"])),
        sorted_cell(f"{row['rank']:.0f} of {row['among']}", left=False, key=f"{row['rank']:.0f}"),
        sorted_cell(row["group"] if row["tested"] else UNTESTED),
    ]


def _chart(name: str, changes: Sequence[_Change]) -> Markup:
    """Scores of best layers after each submission; nothing if none has ever moved."""
    frames = [each.rows.assign(x=each.number) for each in changes]
    rows = pd.concat(frames)
    if not (rows["change"] == "moved").any():
        return Markup("")
    points = []
    for key, own in rows.groupby(COLUMN, sort=False):
        _, task, dataset, protocol, _, metric = key
        values = pd.to_numeric(own.set_index("x")["value_now"])  # NaN where it is gone
        after = range(int(own["x"].min()), len(changes) + 1)
        series = f"{task} {metric}, {dataset} ({protocol})"
        # a score stands until the next submission that changes it
        stands = [values[values.index[values.index <= number][-1]] for number in after]
        points += [(series, number, value) for number, value in zip(after, stands, strict=True)]
    frame = pd.DataFrame(points, columns=["series", "x", "y"])
    plot = Plot(frame, "lines", f"{name} after each submission", "after submission no.", "best layer, %")
    return Markup(svg_element(plot, (), "time-"))  # noqa: S704 - escaped where it is written


def _badge(words: str) -> str:
    """A badge for the README of a repository, as SVG."""
    return filled("badge.svg", label="layerboard", words=words, letter=LETTER)
