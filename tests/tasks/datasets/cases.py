"""Facts of every public dataset, as tests of a case with a small subclass an entry."""

import json
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from PIL import Image, ImageFile, ImageOps

from layerboard.tasks.datasets.base import Data, DatasetEntry, FileSample, images_of
from layerboard.tasks.datasets.catalogue import Inspection, State, inspect, read_own
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.datasets.coco import Regions
from layerboard.tasks.datasets.davis import Videos
from layerboard.tasks.datasets.defects import Defects
from layerboard.tasks.datasets.instances import Instances
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.revisitop import Retrieval
from layerboard.tasks.datasets.scenes import Scenes
from layerboard.tasks.datasets.spair import Keypoints
from layerboard.tasks.framework.identity import own_name
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError, MissingDataError
from tests.tasks.datasets.helpers import copy_shuffled, keys

KINDS: Mapping[str, type[Data]] = {
    "classification": Classification,
    "retrieval": Retrieval,
    "instances": Instances,
    "videos": Videos,
    "keypoints": Keypoints,
    "scenes": Scenes,
    "defects": Defects,
    **dict.fromkeys(("objects", "masks", "parts"), Regions),
}
"""What tasks of a role are given."""

Change = Callable[[Path], object]
"""Changes the file or the folder at a path."""
Lacks = Sequence[tuple[str, State, str]]
Spoiled = Sequence[tuple[str, Change, str]]


def content(new: bytes | str) -> Change:
    """A file of that content."""
    return lambda path: path.write_bytes(new.encode() if isinstance(new, str) else new)


def cut(path: Path) -> None:
    """The first half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(path: Path) -> None:
    """A file or a folder goes."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def edited(edit: Callable[[Any], object]) -> Change:
    """A file of JSON or a pickle whose content is edited in place, or replaced by what the edit returns."""

    def change(path: Path) -> None:
        packed = path.suffix == ".pkl"
        value = pickle.loads(path.read_bytes()) if packed else json.loads(path.read_text())
        value = edit(value) or value
        path.write_bytes(pickle.dumps(value) if packed else json.dumps(value).encode())

    return change


def fields(**new: object) -> Change:
    """The same with other fields at its top; of the value ... there is none."""

    def edit(value: dict[str, object]) -> None:
        value.update(new)
        for name in (name for name, field in new.items() if field is ...):
            del value[name]

    return edited(edit)


def last(**new: object) -> Change:
    """Other fields of the last annotation."""
    return edited(lambda value: value["annotations"][-1].update(new))


def told(data: Data, root: Path) -> str:
    """All fields of data as text, without the place of their files."""
    return repr(data).replace(str(root), "")


class DatasetCase:
    """Facts of a reader, by a tiny dataset in the official layout; paths are below the dataset's folder."""

    entry: ClassVar[DatasetEntry[Any]]
    fake: ClassVar[Callable[[Path], object]]
    """Writes the tiny dataset into a data folder."""
    alike: ClassVar[Sequence[DatasetEntry[Any]]] = ()
    """Entries of the same reader, of which only the layout and the sentence without it are tested."""
    counts: ClassVar[Mapping[str, object]]
    """Official numbers, if the tiny dataset were the official one, as fields of the entry."""
    choices: ClassVar[Mapping[str, object]] = MappingProxyType({})
    """Further fields without which the tiny dataset could not be read."""
    complete: ClassVar[str]
    """The coverage by these numbers."""
    partial: ClassVar[str]
    """A part of the coverage by the official numbers."""
    first: ClassVar[str]
    """Name of the first image."""
    limited: ClassVar[tuple[str, int]]
    """Of a limit of one: the note, and how many images are left."""
    pixels: ClassVar[str]
    """An image."""
    target: ClassVar[tuple[str, Change]]
    """A file of what is to be predicted, and another target."""
    reordered: ClassVar[tuple[str, Change]] = ("", lambda path: None)
    """A file, and its items in another order."""
    lacks: ClassVar[Lacks]
    """What may be missing, the state of the rest, and what is said."""
    spoiled: ClassVar[Spoiled]
    """Paths, what may be wrong with them, and what is said."""

    def write(self, root: Path, row: DatasetEntry[Any]) -> object:
        """Write the tiny dataset of an entry; `fake` does, unless the entry matters."""
        return type(self).fake(root)

    def small(self, root: Path, row: DatasetEntry[Any] | None = None) -> DatasetEntry[Any]:
        """The entry of the tiny dataset, which is written."""
        self.write(root, row or self.entry)
        return replace(row or self.entry, **self.choices, **self.counts)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test for each row of the tables."""
        if "row" in metafunc.fixturenames:
            rows = (self.entry, *self.alike)
            metafunc.parametrize("row", rows, ids=[row.name for row in rows])
        if "lack" in metafunc.fixturenames:
            metafunc.parametrize("lack", self.lacks, ids=[path for path, *_ in self.lacks])
        if "fault" in metafunc.fixturenames:
            metafunc.parametrize("fault", self.spoiled, ids=[text for *_, text in self.spoiled])

    def test_the_official_layout_is_read(self, tmp_path: Path, row: DatasetEntry[Any]) -> None:
        found = inspect(tmp_path, self.small(tmp_path, row))
        assert (found.name, found.state, found.text) == (row.name, State.COMPLETE, self.complete)
        names = keys(images_of(found.data))
        assert names[0] == self.first
        assert len({*names}) == len(names)
        assert next(images_of(found.data)).open().mode == "RGB"

    def test_other_numbers_than_the_official_ones_are_said(self, tmp_path: Path) -> None:
        self.write(tmp_path, self.entry)
        found = inspect(tmp_path, replace(self.entry, **self.choices))
        assert found.state is State.PARTIAL
        assert self.partial in found.text

    def test_a_folder_that_is_not_there_is_said(self, tmp_path: Path, row: DatasetEntry[Any]) -> None:
        root = tmp_path / row.folder
        text = f"looked for {root}; expected {row.layout} in {tmp_path}"
        assert inspect(tmp_path, row) == Inspection(row.name, State.MISSING, text)
        text = f"expected {row.name} ({row.layout}) at {root}, which does not exist"
        with pytest.raises(MissingDataError, match=f"^{re.escape(text)}$"):
            row.read(tmp_path)
        assert row.folder in row.layout

    def test_what_lacks_is_said(self, tmp_path: Path, lack: tuple[str, State, str]) -> None:
        small = self.small(tmp_path)
        path, state, text = lack
        remove(tmp_path / small.folder / path)
        found = inspect(tmp_path, small)
        assert found.state is state
        assert re.search(text, found.text)
        assert state is State.PARTIAL or re.match("expected |.* cannot be read: ", found.text)

    def test_what_is_wrong_is_said(self, tmp_path: Path, fault: tuple[str, Change, str]) -> None:
        small = self.small(tmp_path)
        path, change, text = fault
        change(tmp_path / small.folder / path)
        with pytest.raises(InputError, match=text) as raised:
            small.read(tmp_path)
        assert "\n" not in str(raised.value)

    def test_tasks_of_its_roles_get_what_they_take(self, tmp_path: Path) -> None:
        data = self.small(tmp_path).read(tmp_path)
        assert {*self.entry.roles} <= {task.role for task in TASKS}
        assert all(isinstance(data, KINDS[role]) for role in self.entry.roles)

    def test_the_order_and_the_place_of_files_do_not_matter(self, tmp_path: Path) -> None:
        small = self.small(tmp_path / "a")
        copy_shuffled(tmp_path / "a", tmp_path / "other" / "b")
        path, change = self.reordered
        change(tmp_path / "other" / "b" / small.folder / path)
        one, other = (small.read(root) for root in (tmp_path / "a", tmp_path / "other" / "b"))
        assert told(one, tmp_path / "a") == told(other, tmp_path / "other" / "b")
        if path == "":
            assert own_name(one) == own_name(other)

    def test_other_pixels_and_other_targets_are_other_data(self, tmp_path: Path) -> None:
        small = self.small(tmp_path)

        def identity() -> tuple[str, str]:
            """Of data and, where tasks state the targets, of these, too."""
            data = small.read(tmp_path)
            stated = data.truth is not None or isinstance(data, Classification)
            return own_name(data), "" if stated else told(data, tmp_path)

        found = [identity()]
        file = tmp_path / small.folder / self.pixels
        with Image.open(file) as image:
            ImageOps.invert(image.convert("RGB")).save(file)
        file.write_bytes(file.read_bytes() + bytes(99))  # official data are told by the sizes of their files
        found.append(identity())
        path, change = self.target
        change(tmp_path / small.folder / path)
        found.append(identity())
        assert len({*found}) == 3
        assert len({name for name, _ in found}) >= 2

    def test_a_limit_takes_the_first_ones_and_says_so(self, tmp_path: Path) -> None:
        data = self.small(tmp_path).read(tmp_path)
        few = data.limited(1)
        note, left = self.limited
        assert few.coverage.notes == (*data.coverage.notes, note)
        assert few.coverage.partial
        every, some = ([*images_of(each)] for each in (data, few))
        assert len(some) == left
        assert [image for image in every if image in some] == some
        assert [*images_of(data.limited(1000))] == every

    def test_no_image_is_decoded_when_it_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = self.small(tmp_path)
        load, decoded = ImageFile.ImageFile.load, list[str]()

        def loading(image: ImageFile.ImageFile) -> Any:
            decoded.append(str(image.filename))
            return load(image)

        monkeypatch.setattr(ImageFile.ImageFile, "load", loading)
        images = [image for image in images_of(small.read(tmp_path)) if isinstance(image, FileSample)]
        assert not {*decoded} & {image.path for image in images}
        images[0].open()
        assert decoded[-1] == images[0].path


class OwnDatasetCase(DatasetCase):
    """The same of a layout that the user's own images may have."""

    own: ClassVar[str]
    """Their role."""

    def test_a_zip_of_own_images_is_as_their_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / self.small(tmp_path).folder
        archive = shutil.make_archive(str(tmp_path / folder.name), "zip", folder)
        one, other = read_own(str(folder)), read_own(unpacked(archive, tmp_path / "cache"))
        assert one.role == self.own
        assert [*one.described()] == [*other.described()]
        assert own_name(one) == own_name(other)


def all_cases(case: type[DatasetCase] = DatasetCase) -> Iterator[type[DatasetCase]]:
    """Every case that has been defined."""
    for each in case.__subclasses__():
        if hasattr(each, "entry"):
            yield each
        yield from all_cases(each)
