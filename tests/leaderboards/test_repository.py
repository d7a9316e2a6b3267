"""Submissions of several people: who measured what, what stands, what changed, and the site of it all."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

import layerboard
from layerboard.leaderboards.board import Board
from layerboard.leaderboards.merge import merge_outputs
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.files import safe_name
from layerboard.leaderboards.records.manifest import MANIFEST, claim_of, mark_verified, read_manifest
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.table import best_table
from layerboard.leaderboards.repository import COLUMN, EVERY, Repository
from layerboard.leaderboards.sections.provenance import provenance_blocks
from layerboard.leaderboards.sections.tables import main_table
from layerboard.leaderboards.submission import public_results, write_submission
from layerboard.tasks.blocks import Table
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
    replace(read_manifest(folder), date=f"2026-01-{day:02}T12:00:00+00:00").write(folder)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three submissions, of which the last one corrects the first."""
    folder = tmp_path / "repository"
    submit(folder, "first", 3, {"a": [50.0, 60.0], "b": [40.0, 30.0]})
    submit(folder, "second", 5, {"c": [70.0, 71.0]}, claim="authors")
    submit(folder, "third", 9, {"a": [50.0, 62.5]}, replaces="first")
    return folder


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
        ("second", [GONE, MOVED]),
        ("first", [GONE, MOVED, NEW]),
        ("2026-01-05", [GONE, MOVED, NEW]),
        ("2026-01-06", [GONE, MOVED]),
        ("2026-01-10", []),
        ("2026-01-01", [("new", "a", "", "62.5000"), NEW]),
    ],
)
def test_what_changed_is_told_with_old_and_new_scores(repository, since, expected) -> None:
    assert changes(Repository.read(repository, since), COLUMN) == expected


def test_of_every_layer_what_changed(repository: Path) -> None:
    expected = [("gone", "b", "1", "40.0000", ""), ("gone", "b", "2", "30.0000", "")]
    assert changes(Repository.read(repository), EVERY) == [*expected, ("moved", "a", "2", *MOVED[2:])]


def test_a_submission_that_contradicts_an_earlier_one_is_left_out_and_named(repository: Path) -> None:
    submit(repository, "fourth", 11, {"c": [10.0, 71.0], "d": [1.0, 2.0]})
    found, left_out = Repository.read(repository), list[str]()
    assert {path.parts[0] for path in found.results(4, left_out)} == {"a", "c"}
    assert [reason.partition(": ")[0] for reason in left_out] == [str(repository / "submissions" / "fourth")]


@pytest.mark.parametrize("since", ["fifth", "2026-13-01", "yesterday"])
def test_since_takes_a_day_or_a_submission(repository: Path, since: str) -> None:
    words = f"a day such as 2026-01-31, or one of third, second, first; found '{since}'"
    with pytest.raises(InputError, match=words):
        Repository.read(repository, since)


def test_no_site_is_made_of_altered_files(repository: Path) -> None:
    next((repository / "submissions" / "second").rglob("*.parquet")).unlink()
    results(repository / "submissions" / "second", {"c": [99.0, 99.0]})
    with pytest.raises(InputError, match="second is not as it was submitted: file records/c/knn"):
        Repository.read(repository)
    (repository / "submissions" / "fourth").mkdir()
    with pytest.raises(InputError, match=r"expected a submission with its submission\.json at .*fourth"):
        Repository.read(repository)


@pytest.mark.parametrize(
    "said", [{"claim": "verified"}, {"date": "2026-01-01"}, {"replaces": None}, {"files": []}, {"more": 1}]
)
def test_a_manifest_that_says_something_else_is_refused(repository: Path, said: dict[str, object]) -> None:
    path = repository / "submissions" / "first" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    with pytest.raises(InputError, match="expected a submission with its"):
        read_manifest(path.parent)


def test_what_was_measured_again_is_verified_until_the_manifest_is_another(repository: Path) -> None:
    folder = repository / "submissions" / "first"
    assert claim_of(folder) == "submitted"
    path = mark_verified(folder, ["a/knn.mini-imagenet.standard.parquet"])
    assert path == repository / "verified" / "first.json"
    assert claim_of(folder) == "verified"
    replace(read_manifest(folder), partial=True).write(folder)
    assert claim_of(folder) == "submitted"
    assert claim_of(repository) == ""


def test_who_measured_a_backbone_is_kept_by_merge_and_shown(repository: Path, tmp_path: Path) -> None:
    own = results(tmp_path / "own", {"mine": [80.0, 81.0]})
    first, second = (repository / "submissions" / name for name in ("first", "second"))
    mark_verified(first, [])
    merge_outputs([own, first], tmp_path / "merged")
    merge_outputs([tmp_path / "merged", second], tmp_path / "again")
    board = Board.of(read_records([tmp_path / "again" / "records"]))
    by = {"a": "verified here", "b": "verified here", "c": "by the authors", "mine": "run here"}
    assert board.claims == by
    assert [*main_table(board)["measured"]] == [by[name] for name in main_table(board)["backbone"]]
    weights = next(block for block in provenance_blocks(board)[::-1] if isinstance(block, Table))
    assert dict(zip(weights.frame["backbone"], weights.frame["measured"], strict=True)) == by
    assert ">c <small>by the authors</small></th>" in best_table(report_of(board, {}))


def test_of_one_kind_nothing_more_is_shown(repository: Path) -> None:
    for folder in (repository / "submissions" / "first", results(repository.parent / "own", {"a": [1.0, 2]})):
        board = Board.of(read_records([folder / "records"]))
        assert "measured" not in main_table(board)
        assert "run here" not in best_table(report_of(board, {}))


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
    submit(repository, "a&b#c", 12, {"<b>": [10.0, 20.0]})
    submit(repository, "other", 13, {"c": [1.0, 2.0]})
    with pytest.raises(InputError, match="give the folder of its site by site="):
        layerboard.report(output=repository)
    written = layerboard.report(output=repository, site=tmp_path / "site", since="first").paths
    assert all(path.is_relative_to(tmp_path / "site") for path in written)
    pages = {path: path.read_text() for path in written if path.suffix == ".html" and path.stem != "mini"}
    assert len(pages) == 2 + 5
    for path, page in pages.items():
        assert "<b>" not in page
        assert str(tmp_path) not in page
        assert "Results version 1." in page
        for target in re.findall(r'href="([^"#]+)', page):
            assert (path.parent / unquote(target)).is_file(), target
    index = pages[tmp_path / "site" / "index.html"]
    assert "What changed since first" in index
    assert "replaced by third" in index
    assert "<li>other: second" in index
    assert "62.5" in pages[tmp_path / "site" / "changes.html"]
    assert "moved" in (tmp_path / "site" / "changes.csv").read_text()


def test_since_is_of_repositories_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="since= needs a results repository"):
        layerboard.report(output=results(tmp_path / "own", {"a": [1.0, 2.0]}), since="2026-01-01")
