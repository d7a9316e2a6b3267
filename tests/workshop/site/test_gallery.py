"""Pictures of the report and of `look` show the numbers of today, and every picture is shown somewhere."""

import base64
import gzip
import re
from pathlib import Path

import pytest

from layerboard.leaderboards.report.packing import packed
from workshop.site import gallery


def test_pictures_show_the_numbers_of_today() -> None:
    assert not (names := gallery.outdated()), f"{names} are out of date: python -m workshop.site.gallery"


def test_another_number_is_noticed_in_the_pictures_that_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = gallery.REPORT.read_text("utf-8")
    monkeypatch.setattr(gallery, "REPORT", tmp_path / "report.html")
    for before, after, expected in (
        (r'"value":\[[\d.]+', '"value":[1.5', ["report-first", "report-layers", "report-cost"]),
        (r'"ms":\[[\d.]+', '"ms":[1.5', ["report-first", "report-layers", "report-cost"]),
        (r'"highlight":"[^"]*"', '"highlight":"mini-fs"', []),
    ):
        (data,) = re.findall(r'id="data">(.*?)</script>', text, re.S)
        changed, count = re.subn(before, after, gzip.decompress(base64.b64decode(data)).decode())
        assert count
        gallery.REPORT.write_text(text.replace(data, packed(changed)), "utf-8")
        assert gallery.outdated() == expected


def test_a_picture_that_says_nothing_is_out_of_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    for name in gallery.PICTURES:
        gallery.Image.new("RGB", (2, 2)).save(tmp_path / f"{name}.webp")
    assert gallery.outdated() == [*gallery.PICTURES]


def test_every_picture_of_the_gallery_is_shown() -> None:
    pages = [gallery.ROOT / "README.md", *(gallery.ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    names = sorted(path.name for path in gallery.FOLDER.glob("*.webp"))
    assert [name for name in names if name not in re.findall(r"[\w-]+\.webp", text)] == []
    assert {name.removesuffix(".webp") for name in names if name.startswith(("report", "look"))} == {
        *gallery.PICTURES
    }
