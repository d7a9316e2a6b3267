"""Images for instance retrieval: the user's own, and the test halves of SOP and CUB."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, Self

from layerboard.tasks.datasets.base import (
    Count,
    Coverage,
    Data,
    DatasetEntry,
    FileSample,
    PhotoSample,
    Sample,
    first_of_each,
    images_of,
)
from layerboard.tasks.datasets.copies import COPIES, CopySample
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.labels import (
    FILE_COLUMNS,
    GROUP_COLUMN,
    LabelledFile,
    LabelTable,
    match_rows,
    require_columns,
)
from layerboard.tasks.datasets.reading.names import normal, number_twins, unseen_twins
from layerboard.tasks.datasets.reading.tree import ImageTree, read_tree
from layerboard.zoo.errors import counted, some

DISTRACTOR = "distractor"  # role of a database image that shows none of the things
ROLES = ("query", "database", DISTRACTOR)
COLUMNS = ("image_id", "class_id", "super_class_id", "path")  # of the table of SOP
TRAINING = 100  # first classes of CUB by number, the training half

Part = Literal["query", "database", ""]
# what the folders of queries and of the database are called, case-insensitive
FOLDERS: dict[str, Part] = {
    "query": "query",
    "queries": "query",
    "database": "database",
    "gallery": "database",
}


class Instance(NamedTuple):
    """An image and the thing that it shows."""

    sample: Sample
    thing: str  # "" for a distractor
    part: Part = ""  # ``query`` or ``database``; "" for an image that is both
    kind: str = ""  # kind of a copy; "" for an original
    group: str = ""  # group of images left out of each other's ranking, such as a series; "" for none

    @classmethod
    def of_role(cls, sample: Sample, thing: str, role: str, group: str = "") -> "Instance":
        """An image by its role in a table: one of `ROLES`, or "" for a query that is in the database, too."""
        part: Part = "query" if role == "query" else "database" if role else ""
        return cls(sample, "" if role == DISTRACTOR else thing, part, group=group)

    @property
    def asks(self) -> bool:
        """Whether the image is a query."""
        return self.thing != "" and self.part != "database"


@dataclass(frozen=True, slots=True)
class Instances(Data):
    """Images of things, in sorted order of their keys."""

    name: str
    images: tuple[Instance, ...]
    coverage: Coverage
    role = "instances"

    @property
    def split(self) -> str:
        """Description of the parts that were read, for records."""
        parts = {image.part for image in self.images}
        made = ", with copies" if any(image.kind for image in self.images) else ""
        return ("query, database" if "query" in parts else "all images, each a query") + made

    @property
    def truth(self) -> tuple[object, ...]:
        return tuple((*image[1:4], *filter(None, image[4:])) for image in self.images)

    def described(self) -> Iterator[tuple[str, str, str, str]]:
        yield from ((image.sample.key, "", image.thing, image.part) for image in self.images)

    def held_apart(self) -> Iterator[tuple[str, Iterable[Sample], str, Iterable[Sample]]]:
        known = [each.sample for each in self.images if each.part == "database"]
        yield "database", known, "query", [each.sample for each in self.images if each.part == "query"]

    def limited(self, limit: int) -> Self:
        few = first_of_each(self.images, limit, lambda image: image[1:4])
        if len(few) == len(self.images):
            return self
        note = f"limited to {counted(limit, 'images')} of each thing: {len(few):,} images were used"
        return replace(self, images=few, coverage=self.coverage.noted(note))


def sought(images: Sequence[Instance]) -> list[int]:
    """Number of images that each image has to find; 0 if it is not a query."""
    ranked = [image for image in images if image.part != "query"]
    there = Counter(image.thing for image in ranked)
    near = Counter((image.thing, image.group) for image in ranked)

    def number(image: Instance) -> int:
        left_out = near[image.thing, image.group] if image.group else image.part == ""
        return there[image.thing] - left_out if image.asks else 0

    return [*map(number, images)]


def instances(name: str, images: Iterable[Instance], where: str, coverage: Coverage) -> Instances:
    """A dataset of images in any order, counted in its coverage; raises InputError without a valid query."""
    every = tuple(sorted(images, key=lambda image: image.sample.key))
    asking = [pair for pair in zip(every, sought(every), strict=True) if pair[0].asks]
    alone = [image.sample.key for image, number in asking if not number]
    outside = " of another group" if any(image.group for image in every) else ""
    without = f"{counted(len(alone), 'queries')} without another{outside} ({some(alone, 2)})"
    fault = "; ".join([without if alone else "no query", *coverage.notes])
    require(len(alone) < len(asking), f"a query and another image of one thing{outside} in {where}", fault)
    things = {image.thing for image in every}
    require(len(things) > 1, f"images of two things, or distractors, in {where}", "one thing")
    counts = (
        Count("things", len(things - {""})),
        Count("queries", len(asking) - len(alone)),
        Count("database images", sum(image.part != "query" for image in every)),
    )
    coverage = replace(coverage, counts=counts)
    if distractors := sum(not image.thing for image in every):
        coverage = coverage.remarked(counted(distractors, "distractors"))
    if alone:
        number = counted(len(alone), "images")
        coverage = coverage.remarked(f"{number} alone of its thing, not asked for ({some(alone, 2)})")
    return Instances(name, every, coverage)


# ---- the user's own -----------------------------------------------------------------------------


def has_queries(folder: Path) -> bool:
    """Whether the user's folder contains a query folder and a database folder."""
    return storage.is_folder(folder) and len(_parts(folder)) == 2


def read_queries(folder: Path) -> Instances:
    """The user's own images in folders of queries and of a database, named after the folder.

    A folder below these is a thing, named by its path; images directly in the database are distractors.
    Raises InputError.
    """
    tree, parts = read_tree(folder), _parts(folder)
    images, ignored = [], []
    for path in tree.images:
        top, _, below = path.partition("/")
        thing = normal(below.rpartition("/")[0])
        if top not in parts:
            ignored.append(path)
        else:
            remedy = "move it into a folder that is called as that of its thing in the database"
            is_thing = thing or parts[top] != "query"
            require(is_thing, f"a folder for each thing in {folder / top}", f"the image {path}", remedy)
            images.append(Instance(PhotoSample(path, f"{folder}/{path}"), thing, parts[top]))
    remarks = [f"things from the folders in {' and '.join(sorted(parts))}"]
    if ignored:
        remarks.append(f"{counted(len(ignored), 'images')} beside these ignored ({some(ignored, 2)})")
    alike = unseen_twins((image.thing for image in images), "things")
    coverage = Coverage(notes=tuple(alike), remarks=tuple(remarks)).joined(tree.coverage)
    name = normal(storage.require_text(folder.resolve().name, "the name of the folder of images"))
    return instances(name, images, str(folder), coverage)


def _parts(folder: Path) -> dict[str, Part]:
    """The part, query or database, of each folder in a folder, by name."""
    return {top: FOLDERS[top.lower()] for top in storage.folder_names(folder) if top.lower() in FOLDERS}


def of_table(name: str, tree: ImageTree, table: LabelTable) -> Instances:
    """The user's own images from a table with the thing (group) and, optionally, the role of each.

    Database images without a group are distractors. Raises InputError.
    """
    require_columns(table, FILE_COLUMNS, (GROUP_COLUMN,))
    column = next((number for number, word in enumerate(table.header) if word.lower() == "role"), None)

    def role_of(row: LabelledFile) -> str:
        return "" if column is None else row.cells[column].lower()

    remedy = "nothing stands for an image that looks for others and is looked for"
    for row in table.rows:
        role, line = role_of(row), f"line {row.number} of {table.path}"
        named = f"{', '.join(ROLES)} or nothing as role in {line}"
        require(role in ("", *ROLES), named, repr(role), remedy)
        require(role != "query" or row.group, f"a group of the query in {line}", remedy="add it")
    said = ("group", "groups")
    files, coverage = match_rows([table], tree, lambda row: role_of(row) or row.group, said)
    images = [
        Instance.of_role(PhotoSample(file.path, f"{tree.root}/{file.path}"), file.group, role_of(file))
        for file in files
    ]
    if column is not None:
        coverage = coverage.remarked(f"roles from {table.header[column]}")
    things = [image.thing for image in images]
    coverage = coverage.noted(*unseen_twins(things, "things"), *number_twins(things, "things"))
    return instances(name, images, str(table.path), coverage.joined(tree.coverage))


def of_classes(name: str, labelled: Iterable[tuple[str, Sample, str]], coverage: Coverage) -> Instances:
    """Images of which each is a query for all others of its class outside its group ("" for none)."""
    images = [Instance(sample, label, group=group) for label, sample, group in labelled]
    outside = " that are not of its group" if any(image.group for image in images) else ""
    said = f"things are the classes; each image looks for all others of its thing{outside}"
    return instances(name, images, name, coverage.remarked(said))


def copies_of(data: Data) -> Instances:
    """All images of some data, and copies of each; an image and its copies are queries for each other."""
    images = [Instance(sample, sample.key) for sample in images_of(data)]
    pairs = [*product(images, COPIES)]
    images += [Instance(CopySample(each.sample, kind), each.thing, kind=kind) for each, kind in pairs]
    remarks = (f"each image and {len(COPIES)} copies of it ({', '.join(COPIES)})",)
    return instances(data.name, images, data.name, Coverage(notes=data.coverage.notes, remarks=remarks))


# ---- public datasets ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstanceEntry(DatasetEntry[Instances]):
    """A public dataset of things, with the official numbers of things and images in its test half."""

    roles = ("instances",)

    name: str
    folder: str
    things: int
    images: int
    table: str = ""  # the table of the test half in SOP's layout; "" for the class folders of CUB's

    @property
    def layout(self) -> str:
        below = f"{self.table} and the images that it names" if self.table else "images/NUMBER.NAME/*.jpg"
        return f"{self.folder}/{below}"

    def read(self, data: Path) -> Instances:
        """The existing images of the test half, each of which is a query for all others of its thing."""
        root = self.root(data)
        listed = self._listed(root)
        there = [(thing, path) for thing, path in listed if storage.is_file(root / path)]
        none = f"none of {counted(len(listed), 'images')}"
        require(there, f"{self.layout} in {data}", none, "unpack it there")
        images = [Instance(FileSample(path, f"{root}/{path}"), thing) for thing, path in there]
        read = instances(self.name, images, str(root), Coverage())
        present = len({thing for thing, _ in there}), len(there)
        counts = tuple(map(Count, ("things", "images"), present, (self.things, self.images)))
        return replace(read, coverage=replace(read.coverage, counts=counts))

    def _listed(self, root: Path) -> list[tuple[str, str]]:
        """Thing and path below the root of each image of the test half; raises InputError."""
        if not self.table:
            folders = storage.folder_names(root / "images")
            return [
                (name, f"images/{name}/{file}")
                for name in folders
                if name[:3].isdecimal() and int(name[:3]) > TRAINING
                for file in storage.file_names(root / "images" / name)
            ]
        path = root / self.table
        rows = [line.split() for line in storage.read_lines(path, f"the table of {self.name}")[1:]]
        require(rows, f"a line for each image in {path}")
        for number, row in enumerate(rows, 2):
            columns = f"{' '.join(COLUMNS)} in line {number} of {path}"
            require(len(row) == len(COLUMNS), columns, f"{len(row)} words")
        return [(thing, storage.require_inside(image, str(path))) for _, thing, _, image in rows]


SOP = InstanceEntry("sop", "Stanford_Online_Products", things=11_316, images=60_502, table="Ebay_test.txt")
CUB = InstanceEntry("cub", "CUB_200_2011", things=100, images=5924)
