"""The user's own images, and datasets in their form: class folders at any depth, tables, or no classes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os.path import commonpath
from pathlib import Path, PurePosixPath

from layerboard.tasks.datasets import classes as classed
from layerboard.tasks.datasets.base import Count, Coverage, Data, DatasetEntry, PhotoSample
from layerboard.tasks.datasets.classes import Classification, LabelledSample, Unlabelled
from layerboard.tasks.datasets.instances import of_table
from layerboard.tasks.datasets.integrity import mismatch, require
from layerboard.tasks.datasets.reading.files import IMAGE_EXTENSIONS, require_directory, require_text
from layerboard.tasks.datasets.reading.labels import (
    AS_IT_IS,
    FILE_COLUMNS,
    LABEL_COLUMNS,
    METADATA,
    LabelledFile,
    Labelling,
    LabelTable,
    find_metadata,
    match_rows,
    read_groups,
    read_label_table,
    require_columns,
)
from layerboard.tasks.datasets.reading.names import normal, number_twins, unseen_twins
from layerboard.tasks.datasets.reading.splits import (
    QUERY_SPLITS,
    SPLITS,
    TRAIN,
    find_splits,
    require_own_classes,
    split_of,
)
from layerboard.tasks.datasets.reading.tree import ImageTree, read_tree
from layerboard.tasks.datasets.targets import TargetColumns, Targets, find_targets, targets_of
from layerboard.zoo.errors import InputError, counted, some

NO_LABELS = Path("none")  # given instead of a table of labels if folders are not classes
NO_CLASSES = "no classes: layers are described, not ranked"  # remark for images without classes


def read_folder(folder: Path, labelling: Labelling = AS_IT_IS) -> Data:
    """The user's own images as a dataset named after the folder; keys are paths relative to it.

    Classes come from a table of labels, else from a `METADATA` file inside, else, except for `NO_LABELS`,
    from folders: the class of an image is the path of its folder, ``cat`` or ``animal/cat``, below ``train``
    and ``val`` if there is such a split. Images directly in the folder, without a table, have no classes.
    Without val, every image is tested with the others. Groups of a table without classes are things
    (`tasks.datasets.instances`). Raises InputError.
    """
    require_directory(folder, "a folder of images")
    name = normal(require_text(folder.resolve().name, "the name of the folder of images"))
    tree = read_tree(folder)
    ignored = f" but {'; '.join((*tree.notes, *tree.remarks))}" if tree.others else ""
    images = f"images ({', '.join(IMAGE_EXTENSIONS)} and others) below {folder}"
    require(tree.images, images, f"none{ignored}")
    if labelling.labels != NO_LABELS and (tables := _tables(tree, labelling)):
        return _tabled(name, tree, tables, labelling)
    if 3 * len(tree.twins) >= len(tree.images):  # one of each pair, or two of three, would be no image
        number, twin = f"{len(tree.twins):,} of {len(tree.images):,}", " and ".join(tree.twins[0])
        raise mismatch(
            f"images without masks in {folder}",
            f"{number} files that look like masks of images beside them, by their names ({twin})",
            "move them into a folder elsewhere, or name the images in a table, --labels FILE.csv",
        )
    if labelling.labels == NO_LABELS:
        return _unlabelled(name, tree)
    if labelling.target in ("number", "labels"):
        raise InputError(
            f"--target {labelling.target} is of a table that says it of each image, which {folder} has not; "
            "give it with --labels FILE.csv"
        )
    loose = [path for path in tree.images if "/" not in path]
    if len(loose) == len(tree.images):
        return _unlabelled(name, tree)
    classed.require_no_loose(folder, loose, f"{classed.SORT}, or say the classes with --labels FILE.csv")
    return _classes(name, tree, *_in_groups(*_class_folders(tree), tree, labelling.groups))


def _tabled(name: str, tree: ImageTree, tables: Sequence[LabelTable], labelling: Labelling) -> Data:
    """The dataset of images with classes, numbers, labels or things from tables."""
    inside, root = {table.path.resolve() for table in tables}, tree.root.resolve()
    tree = replace(tree, others=tuple(path for path in tree.others if root / path not in inside))
    columns = find_targets(tables, labelling.target)
    if tables[0].label is None and tables[0].group is not None and not columns:  # things
        return of_table(name, tree, tables[0])
    for table in tables:
        require_columns(table, FILE_COLUMNS, *(() if columns else (LABEL_COLUMNS,)))
    files, coverage = match_rows(tables, tree, *((columns.said, columns.noun) if columns else ()))
    grouped = _in_groups(_in_split_folders(files), coverage, tree, labelling.groups)
    return _targets(name, tree, columns, *grouped) if columns else _classes(name, tree, *grouped)


def _unlabelled(name: str, tree: ImageTree) -> Unlabelled:
    samples = tuple(PhotoSample(path, f"{tree.root}/{path}") for path in tree.images)
    tables = (path for path in tree.others if path.endswith(".csv") and "/" not in path)
    table = next((path for path in tables if path not in METADATA), None)
    hint = [f"--labels {tree.root / table} would take classes from that file"] if table else []
    coverage = Coverage((Count("images", len(samples)),), remarks=(NO_CLASSES, *hint))
    return Unlabelled(name, samples, coverage.joined(tree.coverage))


def _tables(tree: ImageTree, labelling: Labelling) -> list[LabelTable]:
    """The tables of labels: the given one, or metadata in the folder; empty if there are none.

    Metadata without a column of classes are ignored, unless a target is requested.
    """
    if labelling.labels is not None:
        return [read_label_table(labelling.labels)]
    return [table for table in find_metadata(tree) if table.label or labelling.target]


def _in_split_folders(files: Sequence[LabelledFile]) -> Sequence[LabelledFile]:
    """Images of a table with the splits that it says, or else with those of the folders that all are in."""
    if any(file.split for file in files):
        return [file._replace(split=split_of(file.split) or file.split) for file in files]
    above = commonpath([file.path.rpartition("/")[0] for file in files])
    tops = [file.path.removeprefix(above).lstrip("/").partition("/") for file in files]
    splits = [split_of(top) if below else "" for top, below, _ in tops]
    if TRAIN not in splits or "" in splits:
        return files
    return [file._replace(split=split) for file, split in zip(files, splits, strict=True)]


def _in_groups(
    files: Sequence[LabelledFile], coverage: Coverage, tree: ImageTree, table: Path | None
) -> tuple[Sequence[LabelledFile], Coverage]:
    """Images with the groups from a table, or unchanged, and their coverage with remarks on the groups."""
    if table is not None:
        matched, said = match_rows([read_groups(table)], tree, lambda row: row.group, ("group", "groups"))
        group_of = {file.path: file.group for file in matched}
        files = [file._replace(group=group_of.get(file.path, "")) for file in files]
        coverage = coverage.remarked(*said.remarks)
    if groups := {file.group for file in files} - {""}:
        alone = sum(not file.group for file in files)
        several = f", {counted(alone, 'images')} of none" if alone else ""
        together = f"{counted(len(groups), 'groups')} of images that belong together{several}"
        coverage = coverage.remarked(together)
    return files, coverage


def _class_folders(tree: ImageTree) -> tuple[list[LabelledFile], Coverage]:
    """Images with their folder as the class, and a coverage with remarks on the classes."""
    splits = find_splits(tree.root, tree.images) or {"": ""}
    left_out, files = [], []
    for path in tree.images:
        if (folder := next((each for each in splits if path.startswith(each)), None)) is None:
            left_out.append(path)
        else:
            label = normal(path.removeprefix(folder).rpartition("/")[0])
            files.append(LabelledFile(path, label, splits[folder]))
    labels = {file.label for file in files}
    for label in sorted(labels - {""}):
        parents = PurePosixPath(label).parents
        above = next((parent for parent in parents if str(parent).removeprefix(".") in labels), None)
        apart = f"every folder of {tree.root} to hold either images of one class or further folders"
        remedy = "move them, or give the classes by --labels FILE"
        require(above is None, apart, f"images in {above} and in {label}", remedy)
    remarks = ["classes from folders" + (", by their paths" if any("/" in label for label in labels) else "")]
    named = [f"{folder[:-1]} is {split}" for folder, split in splits.items() if folder[:-1].lower() != split]
    remarks += [", ".join(named)] if named else []
    remarks += require_own_classes(tree.root, labels)
    if left_out:
        remarks.append(f"{len(left_out):,} images beside train and val ignored ({some(left_out, 2)})")
    return files, Coverage(remarks=tuple(remarks))


def _alike(files: Sequence[LabelledFile]) -> list[str]:
    """Notes on names of a table that are probably one, and on groups that read alike."""
    labels, groups = {file.label for file in files if file.cells}, {file.group for file in files}
    numbers = [*number_twins(labels, "classes"), *number_twins(groups, "groups")]
    return [*unseen_twins(groups, "groups"), *numbers]


def _queries(tree: ImageTree, files: Sequence[LabelledFile]) -> str:
    """The split of the queries; "" if images have no split; raises InputError."""
    named = {file.split for file in files}
    what = some(sorted(repr(split) for split in named - {*SPLITS})) or "no train"
    is_known = named == {""} or {TRAIN} <= named <= {*SPLITS}
    require(is_known, f"the splits of {tree.root} to be {TRAIN} and {QUERY_SPLITS[0]}", what)
    return next((split for split in QUERY_SPLITS if split in named), "")


def _classes(name: str, tree: ImageTree, files: Sequence[LabelledFile], coverage: Coverage) -> Classification:
    """The dataset of images with classes and splits; without splits each is tested with the others."""
    root, queries = str(tree.root), _queries(tree, files)
    images = defaultdict[str, list[LabelledSample]](list)
    for file in files:
        images[file.split or TRAIN].append((file.label, PhotoSample(file.path, f"{root}/{file.path}")))
    train, classes, val = images[TRAIN], {label for label, _ in images[TRAIN]}, None
    classed.require_classes(len(classes), root, "--labels none takes all images as ones without classes")
    if queries:
        val = images[queries]
        coverage = coverage.remarked(*([f"val is {queries}"] if queries != "val" else []))
        coverage = _without_further(coverage, len(files) - len(train) - len(val))
    twins = [] if files[0].cells else number_twins(classes, "classes")
    coverage = coverage.noted(*_alike(files)).remarked(*twins).joined(tree.coverage)
    groups = {file.path: file.group for file in files if file.group}
    data = classed.classification(name, train, val, f"{queries} of {root}", coverage).grouped(groups)
    if not data.untestable:
        return data
    said = {classed.EVERY: f"no image can be tested, which {data.untestable}"}
    remarks = [said.get(remark, remark) for remark in data.coverage.remarks]
    return replace(data, coverage=replace(data.coverage, remarks=tuple(remarks)))


def _without_further(coverage: Coverage, number: int) -> Coverage:
    """A coverage with a note on images of other splits than the two that are used, if there are any."""
    return coverage.noted(f"{number:,} images of further splits left out") if number else coverage


def _targets(
    name: str, tree: ImageTree, columns: TargetColumns, files: Sequence[LabelledFile], coverage: Coverage
) -> Targets:
    """The dataset of images with numbers or labels, tested by folds or on the split of the queries."""
    queries = _queries(tree, files)
    number, files = len(files), [file for file in files if file.split in ("", TRAIN, queries)]
    coverage = replace(coverage, counts=(Count("images", len(files)),))
    coverage = _without_further(coverage, number - len(files))
    coverage = coverage.noted(*_alike([file._replace(label="") for file in files]))
    samples = [PhotoSample(file.path, f"{tree.root}/{file.path}") for file in files]
    return targets_of(name, samples, columns, files, coverage.joined(tree.coverage))


@dataclass(frozen=True, slots=True)
class TabledEntry(DatasetEntry[Targets]):
    """A folder of images, and a table of the values to predict."""

    form = "{0.folder}/images/* and {0.folder}/{0.table}"

    name: str
    table: str  # file in the folder
    images: int  # official number
    roles: tuple[str, ...]  # ``numbers``, or ``labels`` if the table has several an image
    folder: str = "targets"

    def read(self, data: Path) -> Targets:
        root = self.root(data)
        read = read_folder(root / "images", Labelling(root / self.table))
        if not isinstance(read, Targets):
            raise mismatch(f"columns of numbers or labels in {root / self.table}", "classes")
        counts = (Count("images", len(read.samples), self.images),)
        return replace(read.named(self.name), coverage=replace(read.coverage, counts=counts))
