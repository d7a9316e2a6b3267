"""What is wrong with the user's own images and tables: a row is what there is, and what is said of it."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.zoo.errors import InputError

TEN = "0 1 2 3 4 5 6 7 8 9"
NUMBER, LABELS = Labelling(target="number"), Labelling(target="labels")


def numbered(cells: str, name: str = "x") -> str:
    """A table with a cell for each of the first images; there are blanks between the cells."""
    return f"file,{name}\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells.split()))


def below(folders: str, names: str = "cat dog eel") -> str:
    """An image in each class folder of some folders."""
    return " ".join(f"{folder}/{name}/0" for folder in folders.split() for name in names.split())


FOLDERS: tuple[tuple[str, str], ...] = (
    ("cat/0 cat/thumbs/0 dog/0", "images in cat and in cat/thumbs; move them, or give"),
    ("train/0 test/0", "class folders in test and train of .*, found images directly in them; sort"),
    ("train/0 test/0 train/cat/0", r"class folders in .*test, found images directly in it \(0.png\)"),
    ("cat/0 cat/1 cat/2", "at least 2 classes in .*, found 1; --labels none takes"),
    ("cat/0 dog/0 0", r"found 1 images directly in it \(0.png\); move every image"),
    ("train/cat/0 other/cat/0", "expected a folder val or test beside .*train, or nothing, found other"),
    (below("train trainval test"), "each split once in .*, found train and trainval; rename one"),
    (below("cat dog eel", "train test"), "found cat and dog, which both hold test, train; rename"),
    *(
        (below(folders), rf"of different class names in .*, found {named}, which both hold ")
        for folders, named in (
            ("siteA siteB", "siteA and siteB"),
            ("siteA siteB siteC", "siteA and siteB"),
            ("all/siteA all/siteB", "siteA and siteB"),
            ("train/siteA train/siteB", "siteA and siteB"),
            ("val test", "test and val"),
            ("fold1 fold2 fold3", "fold1 and fold2"),
            ("images/train masks/train", "images and masks"),
        )
    ),
    (f"{below('set/train set/val')} more/other/0", "class names in .*, found train and val, which both"),
    ("query/0 database/mug/1", r"for each thing in .*query, found the image query/0.png; move it"),
    ("query/cup/0 database/mug/1", "a query and another image of one thing.*found 1 query without another"),
)
GROUPED = "file,group,role\n"
TABLES: tuple[tuple[str | bytes, str], ...] = (
    ("file,label\n", "expected a row for each image"),
    ("", "expected a row for each image"),
    ("a,b\n1,2\n", "a column file_name, .* or image and a column label or class .* found 'a', 'b'"),
    ("file,b\n1,x\n", "found 'file', 'b'"),
    ("file,age\n0,1\n", "20 different numbers in .*, found 1 in 'age'; say --target number, or name"),
    ("file,label\nx.png,cat\ny.png,dog\n", "name images below .* such as 0.png, found none of its 2"),
    ("file,label\n0,\n1,\n", "expected a class in the rows of l.csv, found none"),
    ("file,label\n0,cat\n0.png,dog\n", "class of 0.png, found 'cat' in line 2 of .* and 'dog' in line 3"),
    ("file,label\n0,cat\n1,cat,x\n", "expected 2 columns in every line of .*, found 3 in line 3"),
    ("file,label\n0,cat\n,cat\n", "expected an image in every row of .*, found none in line 3"),
    ("file,label\n0,cat\n1,cat\n", "expected at least 2 classes in .*, found 1"),
    ("file,label,split\n0,a,train\n1,b,part\n", "the splits of .* to be train and val, found 'part'"),
    ("file,label,split\n0,a,test\n1,b,val\n", "to be train and val, found no train"),
    ("file,label,split,group\n0,a,train,p\n1,a,val,p\n2,b,train,\n3,b,val,\n", "in val, found p in both"),
    (b"file,label,label\na,x,y\n", "has two columns 'label'; rename one of them"),
    (b"# made by hand\nfile,label\na,x\n", "remove the lines above the names of the columns"),
    (b"file,label\na,\x81\n", "save it as CSV in UTF-8"),
    (b"PK\x03\x04\xff\xfe", "save it as CSV in UTF-8"),
    ('file,label\n0,a\n1,"b\n2,a\n3,b"\n', r"quotation mark in line 3 of .*, found 'b\\n2"),
    ('file,label\n0,a\n\n1,"b\n', "quotation mark in line 4 of"),
    ('file,group,label\n0,"x,a\n1,"y",b\n', "quotation mark in line 2 of"),
    ('label,text,file\na,"x\ny",0\na,"z,1.png\nb,y",2\n', "quotation mark in line 4 of"),
    (f"{GROUPED}0,a,query\n1,a,qury", "distractor or nothing as role in line 3 of .*, found 'qury'"),
    (f"{GROUPED}0,,query\n1,a,", "a group of the query in line 2 of .*l.csv, found none; add it"),
    (f"{GROUPED}0,a,\n0,b,", "one group of 0.png, found 'a' in line 2 .* and 'b' in line 3"),
    (f"{GROUPED}0,a,query\n0,a,", "found 'query in a' in line 2 .* and 'a' in line 3"),
    (f"{GROUPED}0,a,\n1,b,", "a query and another image of one thing in .*l.csv, found 2 queries"),
    (f"{GROUPED}0,a,database\n1,a,database", "another image of one thing in .*, found no query"),
    (f"{GROUPED}0,a,\n1,a,", "images of two things, or distractors, in .*l.csv, found one thing"),
)
WAYS: tuple[tuple[Labelling, str | None, str], ...] = (
    (Labelling(target="class"), numbered("1 2", "age"), "a column label or class in the first line"),
    (NUMBER, numbered("a b", "label"), "column of numbers in .* for --target number, found file, label"),
    (LABELS, numbered("a b", "label"), r"labels parted by '\|', or of 0 and 1, in .* for --target labels"),
    (NUMBER, None, r"--target number is of a table .* give it with --labels FILE.csv"),
    (NUMBER, numbered("1 2 no 4 5"), "'x' of .*l.csv, line 4, found 'no'; leave the cell empty to leave"),
    (NUMBER, numbered("1 2 inf 4 5"), "line 4, found 'inf'"),
    (NUMBER, numbered('1 2 "1,5" 4 5'), "line 4, found '1,5'; write 1.5$"),
    (NUMBER, numbered('1 2 "1,500" 4 5'), "line 4, found '1,500'; write 1.500, or 1500 if it parts"),
    (NUMBER, "file,x,group\n0,1,all\n1,2,all\n", "images of two groups in photos, .*, found 2 images of one"),
)


def said(root: Path, images: str, table: str | bytes | None = None, labelling: Labelling = AS_IT_IS) -> str:
    """What is said of images, by their paths without the ending, and of a table of labels."""
    for number, name in enumerate(images.split()):
        path = root / "photos" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((2, 2), number, np.uint8)).save(path)
    if table is not None:
        (root / "l.csv").write_bytes(table.encode() if isinstance(table, str) else table)
        labelling = labelling._replace(labels=root / "l.csv")
    with pytest.raises(InputError) as raised:
        read_own(str(root / "photos"), labelling)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(("images", "words"), FOLDERS)
def test_folders_that_are_no_dataset_are_refused(tmp_path: Path, images: str, words: str) -> None:
    assert re.search(words, said(tmp_path, images))


@pytest.mark.parametrize(("table", "words"), TABLES)
def test_a_wrong_table_is_one_sentence(tmp_path: Path, table: str | bytes, words: str) -> None:
    assert re.search(words, said(tmp_path, TEN, table))


@pytest.mark.parametrize(("labelling", "table", "words"), WAYS)
def test_a_table_of_another_kind_is_said(
    tmp_path: Path, labelling: Labelling, table: str | None, words: str
) -> None:
    assert re.search(words, said(tmp_path, TEN, table, labelling))
