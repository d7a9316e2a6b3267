"""Images of things in their layouts, and copies that are made of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.copies import COPIES, SHORT, CopySample
from layerboard.tasks.datasets.instances import CUB, Instances
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.framework.identity import own_name
from layerboard.zoo.errors import InputError


def save(*paths: Path, size: tuple[int, int] = (40, 30)) -> None:
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        number += 100 * sum(path.parents[1].name.encode())  # other images in other folders
        pixels = np.random.default_rng(number).integers(0, 256, (size[1] // 10, size[0] // 10, 3), np.uint8)
        Image.fromarray(pixels).resize(size).save(path)


def shown(data: Instances) -> list[tuple[str, str, str]]:
    return [(image.sample.key, image.thing, image.part) for image in data.images]


def test_queries_and_database(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    save(root / "Query/mug/1.jpg", root / "Query/lamp/1.jpg", root / "Query/fork/1.jpg")
    save(root / "gallery/mug/2.jpg", root / "gallery/mug/3.jpg", root / "gallery/lamp/2.jpg")
    save(root / "gallery/cup/4.jpg", root / "gallery/loose.jpg", root / "more/5.jpg")
    data = read_own(str(root))
    assert isinstance(data, Instances)
    assert shown(data) == [
        ("Query/fork/1.jpg", "fork", "query"),
        ("Query/lamp/1.jpg", "lamp", "query"),
        ("Query/mug/1.jpg", "mug", "query"),
        ("gallery/cup/4.jpg", "cup", "database"),
        ("gallery/lamp/2.jpg", "lamp", "database"),
        ("gallery/loose.jpg", "", "database"),
        ("gallery/mug/2.jpg", "mug", "database"),
        ("gallery/mug/3.jpg", "mug", "database"),
    ]
    assert str(data.coverage) == (
        "4 things, 2 queries, 5 database images; things from the folders in Query and gallery; "
        "1 image beside these ignored (more/5.jpg); 1 distractor; "
        "1 image alone of its thing, not asked for (Query/fork/1.jpg)"
    )
    assert not data.coverage.partial
    assert data.split == "query, database"
    assert own_name(data) == own_name(read_own(str(root)))


def test_a_table_says_what_images_show(tmp_path: Path) -> None:
    save(*(tmp_path / "photos" / f"{number}.jpg" for number in range(7)))
    table = tmp_path / "labels.csv"
    table.write_text(
        "File;Group;Role\n0;mug;query\n1;mug;Database\n2;cup;\n3;cup;\n4;fork;distractor\n5;;database\n"
    )
    data = read_own(str(tmp_path / "photos"), Labelling(labels=table))
    assert isinstance(data, Instances)
    parts: list[tuple[str, str]] = [("mug", "query"), ("mug", "database"), ("cup", ""), ("cup", "")]
    assert [image[1:3] for image in data.images] == [*parts, ("", "database"), ("", "database")]
    assert str(data.coverage) == (
        "2 things, 3 queries, 5 database images; groups from labels.csv (File, Group); roles from Role; "
        "2 distractors; 1 image without a row in labels.csv left out (6.jpg)"
    )
    table.write_text("file,group\n0,a\n1,a\n2,b\n3,\n")
    data = read_own(str(tmp_path / "photos"), Labelling(labels=table))
    assert isinstance(data, Instances)
    assert shown(data) == [("0.jpg", "a", ""), ("1.jpg", "a", ""), ("2.jpg", "b", "")]
    assert "1 image whose row has no group left out (3.jpg)" in str(data.coverage)


def test_copies_of_all_images_of_any_folder(tmp_path: Path) -> None:
    save(*(tmp_path / f"{name}/{number}.jpg" for name in ("mug", "cup") for number in range(2)))
    data = read_own(str(tmp_path), Labelling(copies=True))
    assert isinstance(data, Instances)
    assert {image.thing for image in data.images} == {"mug/0.jpg", "mug/1.jpg", "cup/0.jpg", "cup/1.jpg"}
    assert own_name(data) != own_name(read_own(str(tmp_path)))


def test_groups_that_would_count_for_nothing_are_refused(tmp_path: Path) -> None:
    save(*(tmp_path / f"photos/{number}.jpg" for number in range(4)))
    things, groups = tmp_path / "things.csv", tmp_path / "groups.csv"
    things.write_text("file,group\n0,mug\n1,mug\n2,cup\n3,cup\n")
    groups.write_text("file,group\n0,monday\n1,monday\n2,monday\n3,monday\n")
    for labelling in (Labelling(labels=things), Labelling(copies=True)):
        with pytest.raises(InputError, match=r"--groups is for images with classes.*taken for instances"):
            read_own(str(tmp_path / "photos"), labelling._replace(groups=groups))


def test_class_folders_serve_as_things_where_that_is_asked(tmp_path: Path) -> None:
    save(*(tmp_path / f"{name}/{number}.jpg" for name in ("mug", "cup") for number in range(4)))
    data = read_own(str(tmp_path))
    assert isinstance(data, Classification)
    things = data.serving("instances")
    assert isinstance(things, Instances)
    assert [image.thing for image in things.images] == ["cup"] * 4 + ["mug"] * 4
    assert {image.part for image in things.images} == {""}
    assert things.split == "all images, each a query"
    assert data.serving("classification") is data
    assert data.serving("defects") is None


def test_images_without_labels_look_for_their_copies(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg", tmp_path / "b.png")
    data = read_own(str(tmp_path))
    assert isinstance(data, Unlabelled)
    copies = data.serving("instances")
    assert isinstance(copies, Instances)
    assert len(copies.images) == 2 * (1 + len(COPIES))
    assert {image.thing for image in copies.images} == {"a.jpg", "b.png"}
    assert [image.kind for image in copies.images if image.thing == "a.jpg"] == ["", *sorted(COPIES)]
    assert copies.split == "all images, each a query, with copies"
    assert len(copies.limited(1).images) == len(copies.images)


def test_copies_differ_from_their_image_and_are_the_same_every_time(tmp_path: Path) -> None:
    save(tmp_path / "a.png", size=(600, 400))
    data = read_own(str(tmp_path))
    assert isinstance(data, Unlabelled)
    original = data.samples[0]
    assert {*COPIES} == {"JPEG", "crop", "half size", "rotated", "mirrored", "colours", "blurred", "caption"}
    pixels = np.asarray(original.open().resize((SHORT * 3 // 2, SHORT), Image.Resampling.BICUBIC))
    for kind in COPIES:
        copy = CopySample(original, kind)
        first, again = copy.open(), copy.open()
        assert first.mode == "RGB"
        assert first.tobytes() == again.tobytes()
        assert copy.signature() != original.signature()
        if kind == "crop":
            assert first.width * first.height == pytest.approx(0.7 * pixels[..., 0].size, rel=0.01)
        elif kind == "half size":
            assert first.size == (SHORT * 3 // 4, SHORT // 2)
        else:
            changed = (np.asarray(first) != pixels).any(axis=2)
            assert changed.mean() > (0.14 if kind == "caption" else 0.5), kind
            assert kind != "caption" or not changed[: int(0.84 * SHORT)].any()
    mirrored = np.asarray(CopySample(original, "mirrored").open())
    assert (mirrored[:, ::-1] == pixels).all()


def test_the_test_half_of_cub_is_read(tmp_path: Path) -> None:
    images = tmp_path / "CUB_200_2011" / "images"
    save(*(images / f"{number}.Bird/{image}.jpg" for number in ("100", "101", "200") for image in range(2)))
    data = CUB.read(tmp_path)
    assert [image.thing for image in data.images] == ["101.Bird"] * 2 + ["200.Bird"] * 2
    assert str(data.coverage) == "2 of 100 things, 4 of 5,924 images"
