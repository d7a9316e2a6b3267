"""What a run is told: `Request` holds every option, each declared once.

The command ``run`` and ``layerboard.run`` are made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, fields
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from layerboard.benchmark import parsers
from layerboard.benchmark.option import Form, OnePath, Option, OptionalPath, Plain, Words
from layerboard.zoo.spec import Tap

Dtype = Literal["float32", "bfloat16", "float16"]
StoreDtype = Literal["float32", "float16"]
InterpolationChoice = Literal["auto", "huggingface", "dino", "timm"]  # auto, or a rule of `zoo.load.adapters`

ENGINES = {  # where the function is that makes an engine (`benchmark.engines.choose.EngineMaker`)
    "auto": "layerboard.benchmark.engines.choose:suited_engine",
    "local": "layerboard.benchmark.engines.choose:local_engine",
    "processes": "layerboard.benchmark.engines.choose:process_engine",
    "ray": "layerboard.benchmark.engines.choose:ray_engine",
}

IMAGES = (
    "Your own images, each folder a dataset of its own: class folders in any depth, with or without train "
    "and val; images with a metadata.csv or --labels; images without classes; or hf:DATASET."
)
DATA = "Folder that holds the real datasets, or hf:PACK: a folder, or dataset of the Hub, of parquet files."
LABELS = (
    "CSV file of the classes of --images DIR: columns file and label (and split), files relative to DIR; "
    "none: folders are no classes."
)
FOLDERS = "DIR/metadata.csv, or the folders"

ELSEWHERE = ("devices", "engine", "address", "again")  # options of a run alone

Images = Option[str | Path | Sequence[str | Path], tuple[str, ...]]
Cache = Option[str | Path | None, Path]
Workers = Option[int | None, int]


def cache_option(help: str, usual: str = "below the user's cache folder") -> Cache:  # noqa: A002
    """The option of a folder of what can be computed again."""
    return Option(None, help, instead=parsers.default_cache, usual=usual)


class GivenNetwork(Protocol):
    """A network of this process that a run can call for: what ``layerboard.from_module`` gives."""

    @property
    def reference(self) -> str: ...  # name by which the run finds the network


Backbones = str | Path | GivenNetwork | Sequence[str | Path | GivenNetwork]


class Request(Form, kw_only=False):
    """What to run, and how; the command ``run`` and the function ``layerboard.run`` have exactly its options.

    Whatever is wrong about an option alone raises InputError when the request is made.
    """

    PANELS: ClassVar[Mapping[str, str]] = {  # groups of options in the help
        "Features": "layers taps transform fuse input_size interpolation poolings",
        "Machine": "cache device devices engine address dtype store_dtype batch_size workers",
    }

    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (),
        "Names, patterns ('dino-*'), Hub ids (owner/name[@revision]), directories, Python objects "
        "(module:function), networks of timm (timm:NAME); from Python also what from_module gives.",
        parsers.backbones,
        also="-b",
        usual="the suite's",
    )
    tasks: Words = Option((), "Tasks to run.", also="-t", usual="all that the data allows")
    _: KW_ONLY
    suite: Plain[str | None] = Option(
        None, "Suite of datasets and backbones.", usual="mini, or standard with --data or --images"
    )
    data: OptionalPath = Option(None, DATA)
    images: Images = Option((), IMAGES)
    labels: OptionalPath = Option(None, LABELS, usual=FOLDERS)
    output: OnePath = Option("results", "Folder of records and tables.", also="-o")
    cache: Cache = cache_option("Folder of features and rendered data; they serve later runs.")
    device: Plain[str] = Option("auto", "auto, cpu, cuda or cuda:N.")
    devices: Words = Option(
        (),
        "Several devices, a process each: cuda:0,cuda:1, or all for every GPU of this machine.",
        parsers.listed,
        usual="that of --device alone",
    )
    engine: Plain[str] = Option(
        "auto",
        "Who computes: this process, processes of this machine, or a Ray cluster; auto: what suits.",
        choices=ENGINES,
    )
    address: Plain[str | None] = Option(
        None, "Address of an existing Ray cluster, HOST:PORT.", usual="one on this machine"
    )
    dtype: Plain[Dtype] = Option("float32", "Dtype of the forward pass.")
    store_dtype: Plain[StoreDtype] = Option("float32", "Dtype of stored vectors; float16 halves the disk.")
    batch_size: Plain[int] = Option(64, "Images in a batch.", least=1)
    workers: Workers = Option(
        None, "Threads that decode and score.", least=1, instead=parsers.default_workers, usual="processors"
    )
    layers: Plain[str] = Option("all", "all, or a list such as 4,8-12,final (0: the input).")
    taps: Option[str | Sequence[str], tuple[Tap, ...]] = Option(
        "block",
        "What to read of them, one or several: block,input,norm1,query,key,value,heads,attention,mid,norm2,"
        "mlp_hidden,mlp; of ResNets block,input,skip,branch.",
        parsers.taps,
        several=False,
    )
    transform: Words = Option(
        (),
        "What to do to features before they are scored, beside nothing, one or several: debias:K (tokens "
        "without K directions of the position), whiten, zscore (vectors).",
        parsers.transforms,
        usual="nothing",
    )
    fuse: Words = Option(
        (),
        "Sets of layers that are scored together, beside each layer, one or several: last4, quarters, all, "
        "pairs.",
        parsers.sets,
        usual="none",
    )
    input_size: Option[int | str | Sequence[int | str] | None, tuple[int, ...]] = Option(
        (),
        "Side of the images in pixels; several (224,448) are compared in a table of their own, each backbone "
        "once at each.",
        parsers.sides,
        usual="each backbone's own",
    )
    interpolation: Plain[InterpolationChoice] = Option(
        "auto", "Rule for position embeddings at other sizes; auto: each backbone's own."
    )
    poolings: Words = Option(
        "cls,mean",
        "Vectors to keep: cls, mean, or both; and patchwise, of a grid without a class token the mean after "
        "blocks of cells were moved into channels.",
        parsers.poolings,
        several=False,
    )
    limit: Plain[int | None] = Option(
        None, "Less data, to try things: images a class, videos, pairs, ...", least=1, usual="all data"
    )
    floor: Plain[bool] = Option(True, "Run the random floor, too.")
    examples: Plain[bool] = Option(
        True, "Keep small pictures of a few images and what was predicted of them, to show failures."
    )
    again: Plain[bool] = Option(False, "Measure costs again, also where they were measured on this device.")
    protocol: Words = Option(
        (),
        "Evaluation protocols, comma-separated: standard; paper, the code of Teaching Matters; or that of "
        "one task, such as insid3 (`list protocols`).",
        parsers.listed,
        usual="the suite's",
    )
    weights: Option[str | Sequence[str] | Mapping[str, str | Path], Mapping[str, Path]] = Option(
        (),
        "NAME=PATH: a backbone's own directory in Hugging Face format, or its authors' file "
        "(.safetensors, .pth).",
        partial(parsers.by_name, parsers.path, "NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar"),
    )

    @property
    def request(self) -> "Request":
        """The options of a run alone, of a form that has more."""
        return Request(**{each.name: getattr(self, each.name) for each in fields(Request)})
