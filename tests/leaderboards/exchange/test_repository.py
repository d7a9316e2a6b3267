"""Submissions of several people: who measured what, what stands, what changed, and the site of it all."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

import layerboard
from layerboard.leaderboards.blocks.blocks import Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.exchange.merge import merge_outputs
from layerboard.leaderboards.exchange.repository import COLUMN, EVERY, Repository, add_accepted
from layerboard.leaderboards.exchange.submission import public_results, write_submission
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.fields import Known
from layerboard.leaderboards.records.files import safe_name
from layerboard.leaderboards.records.manifest import (
    MANIFEST,
    claim_of,
    digests_of,
    mark_verified,
    read_submission_manifest,
)
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.report.choices import choices_of
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.table import best_table
from layerboard.leaderboards.sections.provenance import provenance_blocks
from layerboard.leaderboards.sections.tables import main_table
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import frame, layers

Scores = Mapping[str, list[float]]  # of each layer by backbone


def results(folder: Path, scores: Scores) -> Path:
    """An output folder of k-NN scores."""
    for backbone, values in scores.items():
        path = folder / "records" / safe_name(backbone) / "knn.mini-imagenet.standard.parquet"
        write_checked(frame(layers(values, backbone=backbone, data="d1")), path)
    return folder


def submit(repository: Path, name: str, day: int, scores: Scores, **said: str) -> Path:
    """A submission of that day of January."""
    folder = repository / "submissions" / name
    output = results(repository.parent / f"of {name}", scores)
    write_submission(public_results(output), folder, said.get("claim", "submitted"), said.get("replaces", ""))
    replace(read_submission_manifest(folder), date=f"2026-01-{day:02}T12:00:00+00:00").write(folder)
    return folder


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three submissions, of which the last one corrects the first; not to be changed."""
    folder = tmp_path_factory.mktemp("submitted") / "repository"
    submit(folder, "first", 3, {"a": [50.0, 60.0], "b": [40.0, 30.0]})
    submit(folder, "second", 5, {"c": [70.0, 71.0]}, claim="authors")
    submit(folder, "third", 9, {"a": [50.0, 62.5]}, replaces="first")
    return folder


@pytest.fixture
def repository(submitted: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return shutil.copytree(submitted, tmp_path / "repository")


def changes(repository: Repository, keys: list[str]) -> list[tuple[str, ...]]:
    rows = repository.changes(repository.start, len(repository.submissions), keys)
    names = ["change", "backbone", *(["layer"] if keys == EVERY else []), "value_before", "value_now"]
    return sorted(rows[names].itertuples(index=False, name=None))


GONE, MOVED = ("gone", "b", "40.0000", ""), ("moved", "a", "60.0000", "62.5000")
NEW = ("new", "c", "", "71.0000")


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, [GONE, MOVED]),
        ("first", [GONE, MOVED, NEW]),
        ("2026-01-05", [GONE, MOVED, NEW]),
        ("2026-01-06", [GONE, MOVED]),
        ("2026-01-10", []),
        ("2026-01-01", [("new", "a", "", "62.5000"), NEW]),
    ],
)
def test_what_changed_is_told_with_old_and_new_scores(submitted, since, expected) -> None:
    assert changes(Repository.read(submitted, since), COLUMN) == expected


def test_of_every_layer_what_changed(submitted: Path) -> None:
    expected = [("gone", "b", "1", "40.0000", ""), ("gone", "b", "2", "30.0000", "")]
    assert changes(Repository.read(submitted), EVERY) == [*expected, ("moved", "a", "2", *MOVED[2:])]


def test_a_submission_that_contradicts_an_earlier_one_is_left_out_and_named(repository: Path) -> None:
    submit(repository, "fourth", 11, {"c": [10.0, 71.0], "d": [1.0, 2.0]})
    found = Repository.read(repository)
    assert {result.name.parts[0] for result in found.results(3).values()} == {"a", "c"}
    (reason,) = found.left_out
    assert reason.startswith(f"fourth: {repository / 'submissions' / 'second'}")
    assert "are two different results: top-1 of layer 1 (cls) is 70 in the one and 10 in the other" in reason


def test_what_was_accepted_first_stands_whatever_the_dates_say(repository: Path) -> None:
    """Forged days, and numbers that are moved by less than two machines differ: nothing moves."""
    forged = submit(repository, "fourth", 1, {"c": [99.0, 99.5]})
    near = submit(repository, "fifth", 1, {"c": [70.3, 71.4]})
    for folder in (forged, near):
        replace(read_submission_manifest(folder), date="2001-01-01T00:00:00+00:00").write(folder)
    found = Repository.read(repository)
    assert [each.name for each in found.submissions] == ["first", "second", "third", "fifth"]
    (kept,) = (each for each in found.results(4).values() if each.name.parts[0] == "c")
    assert kept.records["value"].tolist() == [70.0, 71.0]
    (repository / "accepted.txt").write_text("fourth\nfirst\n")
    found = Repository.read(repository)
    assert [each.name for each in found.submissions] == ["fourth", "first", "third"]
    add_accepted(repository, "sixth")
    assert (repository / "accepted.txt").read_text().split()[:2] == ["fourth", "first"]
    assert (repository / "accepted.txt").read_text().split()[-1] == "sixth"


def test_none_replaces_itself_or_what_comes_later(repository: Path) -> None:
    submit(repository, "fourth", 11, {"d": [1.0, 2.0]}, replaces="fifth")
    submit(repository, "fifth", 11, {"e": [1.0, 2.0]}, replaces="fifth")
    submit(repository, "sixth", 12, {"b": [1.0, 2.0]})  # which "first" said otherwise, before it was replaced
    found = Repository.read(repository)
    assert found.left_out == []
    assert {result.name.parts[0] for result in found.results(6).values()} == {"a", "b", "c", "d", "e"}


def test_names_pages_and_facts_of_others_are_not_taken(repository: Path) -> None:
    known = Known(frozenset({("suite", "standard")}))
    for number, (backbone, changes) in enumerate(
        [
            ("C", {}),
            ("d", {"suite": "Mini"}),
            ("e", {"suite": "mini/"}),
            ("f", {"suite": "index"}),
            ("g", {"suite": "Standard"}),
            ("c", {"depth": 40, "task": "fewshot", "metric": "top1-10shot"}),
        ]
    ):
        folder = submit(repository, f"x{number}", 11, {"x": [1.0, 2.0]})
        task = str(changes.get("task", "knn"))
        (folder / "records" / "x" / KNN).unlink()
        target = folder / "records" / backbone / f"{task}.mini-imagenet.standard.parquet"
        write_checked(frame(layers([1.0, 2.0], backbone=backbone)).assign(**changes), target)
        said = replace(
            read_submission_manifest(folder), files=digests_of(folder), weights={backbone: "0123456789abcdef"}
        )
        said.write(folder)
    reasons = Repository.read(repository, known=known).left_out
    for reason, words in zip(
        reasons,
        [
            "the backbone C differs from c in case alone",
            "the suite Mini differs from mini in case alone",
            "needs a name of ASCII letters",
            "the page of the suite 'index' has the name of one of other pages",
            "the suite Standard differs from standard in case alone",
            "of c two things are said: depth 2 and 40",
        ],
        strict=True,
    ):
        assert words in reason


@pytest.mark.parametrize("since", ["fifth", "2026-13-01"])
def test_since_takes_a_day_or_a_submission(submitted: Path, since: str) -> None:
    words = f"a day such as 2026-01-31, or one of third, second, first; found '{since}'"
    with pytest.raises(InputError, match=words):
        Repository.read(submitted, since)


def test_altered_and_unreadable_submissions_are_left_out_and_named(repository: Path) -> None:
    next((repository / "submissions" / "second").rglob("*.parquet")).unlink()
    results(repository / "submissions" / "second", {"c": [99.0, 99.0]})
    (repository / "submissions" / "fourth").mkdir()
    found = Repository.read(repository)
    assert [each.name for each in found.submissions] == ["first", "third"]
    reasons = dict(reason.split(": ", 1) for reason in found.left_out)
    assert reasons["second"].startswith("it is not as it was submitted: file records/c/knn")
    assert reasons["fourth"].startswith("expected a submission with its submission.json at")
    for name in ("first", "third"):
        (repository / "submissions" / name / MANIFEST).unlink()
    with pytest.raises(InputError, match=r"expected submissions in .*, found none that counts: "):
        Repository.read(repository)


@pytest.mark.parametrize(
    "said", [{"claim": "verified"}, {"date": "2026-01-01"}, {"replaces": None}, {"files": []}, {"more": 1}]
)
def test_a_manifest_that_says_something_else_is_refused(
    submitted: Path, tmp_path: Path, said: dict[str, object]
) -> None:
    text = (submitted / "submissions" / "first" / MANIFEST).read_text()
    (tmp_path / MANIFEST).write_text(json.dumps(json.loads(text) | said))
    with pytest.raises(InputError, match="expected a submission with its"):
        read_submission_manifest(tmp_path)


KNN = "knn.mini-imagenet.standard.parquet"


def claims(repository: Path) -> dict[str, str]:
    """Who measured each backbone, as the site says."""
    found = Repository.read(repository)
    every = pd.concat([result.records for result in found.results(len(found.submissions)).values()])
    return dict(Board.of(found.marked(every.assign(claim="submitted"))).claims)


def test_what_was_measured_again_is_verified_until_the_manifest_is_another(repository: Path) -> None:
    folder = repository / "submissions" / "third"
    assert claims(repository) == {}
    assert mark_verified(folder, [f"a/{KNN}"]) == repository / "verified" / "third.json"
    assert claims(repository) == {"a": "verified here", "c": "by others"}
    assert Repository.read(repository).submissions[2].measured == "by others; verified here: 1 of 1 results"
    replace(read_submission_manifest(folder), partial=True).write(folder)
    assert claims(repository) == {}
    assert claim_of(folder) == "submitted"
    assert claim_of(repository) == ""


def test_a_mark_is_the_repositorys_own(repository: Path, tmp_path: Path) -> None:
    """A sender's folder of marks, a link to one, records that call themselves verified: none of it counts."""
    sent = submit(tmp_path / "sent", "x", 12, {"x": [99.0, 99.0]})
    mark_verified(sent, [f"x/{KNN}"])
    merge_outputs([results(tmp_path / "own", {"mine": [80.0, 81.0]}), sent], tmp_path / "merged")
    assert {*read_records([tmp_path / "merged" / "records"])["claim"]} == {"", "submitted"}
    path = next((tmp_path / "merged" / "records" / "x").iterdir())
    write_checked(read_records([path.parent]).assign(claim="verified"), path)
    assert "verified here" not in str(Board.of(read_records([tmp_path / "merged" / "records"])).claims)
    (repository / "submissions" / "x").symlink_to(sent)
    (found,) = Repository.read(repository).left_out
    assert "is a link" in found or "found a link" in found
    (repository / "verified").symlink_to(tmp_path / "sent" / "verified")
    with pytest.raises(InputError, match=r"--mark writes verified/NAME\.json"):
        mark_verified(repository / "submissions" / "first", [])


def test_a_mark_is_written_in_a_repository_alone(repository: Path, tmp_path: Path) -> None:
    first = repository / "submissions" / "first"
    alone = shutil.copytree(first, tmp_path / "a" / "b" / "alone")
    with pytest.raises(InputError, match="alone does not lie in one: give REPOSITORY/submissions/NAME"):
        layerboard.verify(alone, again=True, mark=True)
    assert not (tmp_path / "verified").exists()
    assert not (tmp_path / "a" / "verified").exists()


def test_who_measured_a_backbone_is_kept_by_merge_and_shown(repository: Path, tmp_path: Path) -> None:
    own = results(tmp_path / "own", {"mine": [80.0, 81.0]})
    first, second = (repository / "submissions" / name for name in ("first", "second"))
    merge_outputs([own, first], tmp_path / "merged")
    merge_outputs([tmp_path / "merged", second], tmp_path / "again")
    board = Board.of(read_records([tmp_path / "again" / "records"]))
    by = {"a": "by others", "b": "by others", "c": "by the authors", "mine": "run here"}
    assert board.claims == by
    assert [*main_table(board)["measured"]] == [by[name] for name in main_table(board)["backbone"]]
    weights = next(block for block in provenance_blocks(board)[::-1] if isinstance(block, Table))
    assert dict(zip(weights.frame["backbone"], weights.frame["measured"], strict=True)) == by
    report = report_of(board, {})
    table = best_table(report, choices_of(report)["task"])
    assert "c <small>by the authors</small></th>" in table


def test_a_changed_submission_is_not_merged(repository: Path, tmp_path: Path) -> None:
    first = repository / "submissions" / "first"
    mark_verified(first, [f"a/{KNN}"])
    results(first, {"a": [50.0, 99.0]})
    own = results(tmp_path / "own", {"mine": [80.0, 81.0]})
    with pytest.raises(InputError, match=r"first is not as it was submitted: file records/a/knn\."):
        merge_outputs([own, first], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_of_one_kind_nothing_more_is_shown(repository: Path) -> None:
    for folder in (repository / "submissions" / "first", results(repository.parent / "own", {"a": [1.0, 2]})):
        board = Board.of(read_records([folder / "records"]))
        assert "measured" not in main_table(board)
        report = report_of(board, {})
        assert "run here" not in best_table(report, choices_of(report)["task"])


def test_results_of_others_are_not_submitted_again(repository: Path, tmp_path: Path) -> None:
    first = repository / "submissions" / "first"
    merge_outputs([first, first], tmp_path / "merged")
    for folder in (first, tmp_path / "merged"):
        with pytest.raises(InputError, match="submit what you measured yourself alone"):
            layerboard.submit(folder, to=tmp_path / "other")
    own = results(tmp_path / "own", {"mine": [80.0, 81.0]})
    with pytest.raises(InputError, match="there is no submission 'forst'; did you mean 'first'"):
        layerboard.submit(own, to=repository, replaces="forst")


def test_the_site_links_its_pages_and_escapes_names(repository: Path, tmp_path: Path) -> None:
    marked = submit(repository, "a+b@c", 12, {"b+@64px": [10.0, 20.0], "made-up": [99.0, 99.5]})
    mark_verified(marked, [f"{safe_name('b+@64px')}/{KNN}"])
    submit(repository, "other", 13, {"c": [1.0, 2.0]})
    (repository / "submissions" / "<b>").mkdir()
    with pytest.raises(InputError, match="give the folder of its site by site="):
        layerboard.report(output=repository)
    report = layerboard.report(output=repository, site=tmp_path / "site", since="first")
    assert {note.split(": ")[1] for note in report.notes} == {"other", "<b>"}
    written = report.paths
    assert all(path.is_relative_to(tmp_path / "site") for path in written)
    others = {"mini", "literature"}  # which their own tests read
    pages = {path: path.read_text() for path in written if path.suffix == ".html" and path.stem not in others}
    assert len(pages) == 2 + 4 + 4  # boards and changes; submissions; backbones that still stand
    assert tmp_path / "site" / "literature.html" in written
    for path, page in pages.items():
        assert "<b>" not in page
        assert str(tmp_path) not in page
        assert "Results version 1." in page
        for target in re.findall(r'href="([^"#]+)', page):
            assert (path.parent / unquote(target)).is_file(), target
    index = pages[tmp_path / "site" / "index.html"]
    assert "What changed since first" in index
    assert "replaced by third" in index
    # a mark covers what was measured again alone
    told = re.findall(r">([^<>]+)</a></th><td[^>]*>([^<]+) <small>([^<]+)</small>", index)
    assert told[:3] == [("made-up", "by others", "a+b@c"), ("c", "by the authors", "second"),
                        ("a", "by others", "third")]  # fmt: skip
    assert told[3:] == [("b+@64px", "verified here", "a+b@c")]
    assert sum("by others; verified here: 1 of 2 results" in page for page in pages.values()) > 0
    assert "<li>other: second" in index
    assert "62.5" in pages[tmp_path / "site" / "changes.html"]
    assert "moved" in (tmp_path / "site" / "changes.csv").read_text()


def test_since_is_of_repositories_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="since= needs a results repository"):
        layerboard.report(output=results(tmp_path / "own", {"a": [1.0, 2.0]}), since="2026-01-01")
