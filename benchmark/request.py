"""What a run is told: `Request` holds every option, each declared once.

The command ``run`` and ``benchmark.run`` are made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Literal, Protocol, get_args

from benchmark import parsers
from benchmark.option import (
    OnePath,
    OneWord,
    Option,
    OptionalPath,
    OptionalWhole,
    OptionalWord,
    Switch,
    Whole,
    Words,
)
from zoo.spec import Tap

Dtype = Literal["float32", "bfloat16", "float16"]
StoreDtype = Literal["float32", "float16"]
InterpolationChoice = Literal["auto", "huggingface", "dino", "timm"]
"""``auto``, or a rule of `zoo.load.adapters`."""

ENGINES = {
    "auto": "benchmark.engines.choose:suited_engine",
    "local": "benchmark.engines.choose:local_engine",
    "processes": "benchmark.engines.choose:process_engine",
    "ray": "benchmark.engines.choose:ray_engine",
}
"""By name, where the function is that makes an engine (`benchmark.engines.choose.EngineMaker`)."""

IMAGES = (
    "Your own images, each folder a dataset of its own: class folders in any depth, with or without train "
    "and val; images with a metadata.csv or --labels; images without classes; or hf:DATASET."
)
DATA = "Folder that holds the real datasets, or hf:PACK: a folder, or dataset of the Hub, of parquet files."
LABELS = (
    "CSV file of the classes of --images DIR: columns file and label (and split), files relative to DIR; "
    "none: folders are no classes."
)

ELSEWHERE = ("devices", "engine", "address")
"""Options of a run alone: where its pieces are carried out."""

Paths = str | Path | Sequence[str | Path]
Texts = str | Sequence[str]
Sizes = int | str | Sequence[int | str] | None


class GivenNetwork(Protocol):
    """A network of this process that a run can call for: what ``benchmark.from_module`` gives."""

    @property
    def reference(self) -> str:
        """Name by which the run finds the network."""
        ...


Backbones = str | Path | GivenNetwork | Sequence[str | Path | GivenNetwork]


@dataclass(frozen=True)
class Request:
    """What to run, and how; the command ``run`` and the function ``benchmark.run`` have exactly its options.

    Whatever is wrong about an option alone raises InputError when the request is made.
    """

    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (),
        "Names, patterns ('dino-*'), Hub ids (owner/name[@revision]), directories, Python objects "
        "(module:function), networks of timm (timm:NAME); from Python also what from_module gives.",
        parsers.backbones,
        short="-b",
        several=True,
        usual="the suite's",
    )
    tasks: Words = Option(
        (), "Tasks to run.", parsers.names, short="-t", several=True, usual="all that the data allows"
    )
    _: KW_ONLY
    suite: OptionalWord = Option(
        None,
        "Suite of datasets and backbones.",
        parsers.text,
        usual="mini, or standard with --data or --images",
    )
    data: OptionalPath = Option(None, DATA, parsers.path)
    images: Option[Paths, tuple[str, ...]] = Option((), IMAGES, parsers.names, several=True)
    labels: OptionalPath = Option(None, LABELS, parsers.path, usual="DIR/metadata.csv, or the folders")
    output: OnePath = Option("results", "Folder of records and tables.", parsers.path, short="-o")
    cache: Option[str | Path | None, Path] = Option(
        None,
        "Folder of features and rendered data; they serve later runs.",
        parsers.path,
        instead=parsers.default_cache,
        usual="below the user's cache folder",
    )
    device: OneWord = Option("auto", "auto, cpu, cuda or cuda:N.", parsers.text)
    devices: Words = Option(
        (),
        "Several devices, a process each: cuda:0,cuda:1, or all for every GPU of this machine.",
        parsers.listed,
        several=True,
        usual="that of --device alone",
    )
    engine: OneWord = Option(
        "auto",
        "Who computes: this process, processes of this machine, or a Ray cluster; auto: what suits.",
        parsers.choice,
        choices=ENGINES,
    )
    address: OptionalWord = Option(
        None,
        "Of --engine ray: an existing cluster, HOST:PORT.",
        parsers.text,
        usual="one on this machine",
    )
    dtype: Option[Dtype, Dtype] = Option(
        "float32", "Dtype of the forward pass.", parsers.choice, choices=get_args(Dtype)
    )
    store_dtype: Option[StoreDtype, StoreDtype] = Option(
        "float32",
        "Dtype of stored vectors; float16 halves the disk.",
        parsers.choice,
        choices=get_args(StoreDtype),
    )
    batch_size: Whole = Option(64, "Images in a batch.", parsers.whole, least=1)
    workers: Option[int | None, int] = Option(
        None,
        "Threads that decode and score.",
        parsers.whole,
        least=1,
        instead=parsers.default_workers,
        usual="processors",
    )
    layers: OneWord = Option("all", "all, or a list such as 4,8-12,final (0: the input).", parsers.text)
    taps: Option[Texts, tuple[Tap, ...]] = Option(
        "block",
        "What to read of them, one or several: block,input,norm1,query,key,value,heads,attention,mid,norm2,"
        "mlp_hidden,mlp; of ResNets block,input,skip,branch.",
        parsers.taps,
    )
    transform: Words = Option(
        (),
        "What to do to features before they are scored, beside nothing, one or several: debias:K (tokens "
        "without K directions of the position), whiten, zscore (vectors).",
        parsers.transforms,
        several=True,
        usual="nothing",
    )
    fuse: Words = Option(
        (),
        "Sets of layers that are scored together, beside each layer, one or several: last4, quarters, all, "
        "pairs.",
        parsers.sets,
        several=True,
        usual="none",
    )
    input_size: Option[Sizes, tuple[int, ...]] = Option(
        (),
        "Side of the images in pixels; several (224,448) are compared in a table of their own, each backbone "
        "once at each.",
        parsers.sides,
        several=True,
        usual="each backbone's own",
    )
    interpolation: Option[InterpolationChoice, InterpolationChoice] = Option(
        "auto",
        "Rule for position embeddings at other sizes; auto: each backbone's own.",
        parsers.choice,
        choices=get_args(InterpolationChoice),
    )
    poolings: Words = Option(
        "cls,mean",
        "Vectors to keep: cls, mean, or both; and patchwise, of a grid without a class token the mean after "
        "blocks of cells were moved into channels.",
        parsers.poolings,
    )
    limit: OptionalWhole = Option(
        None,
        "Less data, to try things: images a class, videos, pairs, ...",
        parsers.whole,
        least=1,
        usual="all data",
    )
    floor: Switch = Option(True, "Run the random floor, too.", parsers.switch)
    examples: Switch = Option(
        True,
        "Keep small pictures of a few images and what was predicted of them, to show failures.",
        parsers.switch,
    )
    protocol: Words = Option(
        (),
        "Whose numbers and ways, several with commas: standard; paper, the code of Teaching Matters; or that "
        "of one task, such as insid3 (`list protocols`).",
        parsers.listed,
        several=True,
        usual="the suite's",
    )
    weights: Option[Texts | Mapping[str, str | Path], Mapping[str, Path]] = Option(
        (),
        "NAME=PATH: a backbone's own directory in Hugging Face format, or its authors' file "
        "(.safetensors, .pth).",
        parsers.weights,
        several=True,
    )

    @property
    def request(self) -> "Request":
        """The options of a run alone, of a form that has more."""
        return Request(**{each.name: getattr(self, each.name) for each in fields(Request)})
