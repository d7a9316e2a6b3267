"""What a run is told: `Request` holds every option, each declared once.

The command ``run`` and ``layerboard.run`` are made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, fields
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from layerboard.benchmark import parsers
from layerboard.benchmark.option import Form, OnePath, Option, OptionalPath, Plain, Wholes, Words
from layerboard.zoo.spec import Dtype, Tap

StoreDtype = Literal["float32", "float16"]
TargetChoice = Literal["class", "number", "labels"]
InterpolationChoice = Literal["auto", "huggingface", "dino", "timm"]  # auto, or a rule of `zoo.load.adapters`

ENGINES = {  # where the function is that makes an engine (`benchmark.engines.choose.EngineMaker`)
    "auto": "layerboard.benchmark.engines.choose:suited_engine",
    "local": "layerboard.benchmark.engines.choose:local_engine",
    "processes": "layerboard.benchmark.engines.choose:process_engine",
    "ray": "layerboard.benchmark.engines.choose:ray_engine",
}

IMAGES = (
    "Your own images; each folder is one dataset. Either one folder per class, optionally below train and "
    "val; or images with a metadata.csv or --labels; or images without labels; or hf:DATASET from the Hub."
)
DATA = "Folder of the official datasets, or hf:PACK, a folder or Hub dataset that `data pack` wrote."
BACKBONES = (
    "Names or patterns ('dino-*') of the registry, Hub ids (owner/name[@revision]), directories, Python "
    "objects (module:function), timm models (timm:NAME) or ONNX files (onnx:FILE); from Python also results "
    "of from_module."
)
WEIGHTS = (
    "NAME=PATH: weights of a backbone, as a directory in Hugging Face format or the authors' checkpoint "
    "(.safetensors, .pth)."
)
LABELS = (
    "CSV file with the labels of --images DIR: columns file (relative to DIR), label (or numbers, see "
    "--target) and optionally split, group; none: folder names are not labels."
)
FOLDERS = "DIR/metadata.csv, or the folder names"
GROUPS = (
    "CSV file with the columns file (relative to --images DIR) and group: images of one patient, camera, "
    "place or series, which are sampled together."
)
COPIES = (
    "Of --images: make copies of each image (compressed, cut, turned, ...), and score how well images and "
    "copies find each other: near-duplicates."
)
GROUP_COLUMN = "the column group of the labels"
TARGET = (
    "What the labels are: one class an image; number, one or several columns of numbers (regression); or "
    "labels, several an image, parted by | or columns of 0 and 1."
)
AS_IT_LOOKS = "what the table looks like"

ELSEWHERE = ("devices", "engine", "address", "again")  # options of a run alone

Images = Option[str | Path | Sequence[str | Path], tuple[str, ...]]
Weights = Option[str | Sequence[str] | Mapping[str, str | Path], Mapping[str, Path]]
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

    PANELS: ClassVar[Mapping[str, str]] = {  # groups of options in the help, in its order
        "Data": "suite data images labels groups target copies limit",
        "Backbones": "backbones weights floor",
        "Tasks": "tasks protocol shots",
        "Layers and vectors": "layers poolings taps transform compress fuse input_size interpolation",
        "Machine": "device devices engine address dtype compile fast_resize store_dtype batch_size "
        "workers cache again",
        "Output": "output examples plan json",
    }

    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (), BACKBONES, parsers.backbones, also="-b", usual="the suite's"
    )
    tasks: Words = Option((), "Tasks, see `list tasks`.", also="-t", usual="all that the data allows")
    _: KW_ONLY
    suite: Plain[str | None] = Option(
        None, "Named set of datasets and backbones; see `list suites`.", usual="mini, or standard with data"
    )
    data: OptionalPath = Option(None, DATA)
    images: Images = Option((), IMAGES)
    labels: OptionalPath = Option(None, LABELS, usual=FOLDERS)
    groups: OptionalPath = Option(None, GROUPS, usual=GROUP_COLUMN)
    target: Plain[TargetChoice | None] = Option(None, TARGET, usual=AS_IT_LOOKS)
    copies: Plain[bool] = Option(False, COPIES)
    output: OnePath = Option("results", "Folder for results: records, per-item scores and tables.", also="-o")
    cache: Cache = cache_option("Folder of extracted features and rendered images, which later runs reuse.")
    device: Plain[str] = Option("auto", "Device of the forward passes: auto, cpu, cuda or cuda:N.")
    devices: Words = Option(
        (), "Several devices, one process each: cuda:0,cuda:1 or all.", parsers.listed, usual="--device alone"
    )
    engine: Plain[str] = Option(
        "auto", "Where to compute: this process (local), several processes or a Ray cluster.", choices=ENGINES
    )
    address: Plain[str | None] = Option(None, "Address of an existing Ray cluster.", usual="a new one")
    dtype: Option[str | Sequence[str], tuple[Dtype, ...]] = Option(
        "float32",
        "Number formats of the forward pass; amp-bfloat16: weights float32, products bfloat16; auto: float32 "
        "on a CPU, on a GPU amp-bfloat16 where the protocol is standard, else float32. With several, each "
        "backbone is run in each (NAME@bfloat16), and a table compares them.",
        parsers.dtypes,
        several=False,
        choices=parsers.DTYPES,
    )
    compile: Plain[bool] = Option(
        False, "Compile the blocks of transformers (torch.compile): a wait at first, then faster forwards."
    )
    fast_resize: Plain[bool] = Option(
        False,
        "Also run each backbone on images that torch resizes (NAME@fast-resize): in less time than Pillow, "
        "some pixels a grey level or two apart; a table compares the two.",
    )
    store_dtype: Plain[StoreDtype] = Option("float32", "Dtype of cached features.")
    batch_size: Option[int | str, int | Literal["auto"]] = Option(
        64,
        "Images per batch; auto: 64 on a CPU, on a GPU as many as are fastest, as the task cost measures it.",
        parsers.batch,
    )
    workers: Workers = Option(
        None, "Threads to decode and score.", least=1, instead=parsers.default_workers, usual="processors"
    )
    layers: Plain[str] = Option("all", "all, or a list such as 4,8-12,final; 0: input of the first block.")
    taps: Option[str | Sequence[str], tuple[Tap, ...]] = Option(
        "block",
        "Outputs to read inside each block, comma-separated: block, input, norm1, query, key, value, heads, "
        "attention, mid, norm2, mlp_hidden, mlp; in ResNets block, input, skip, branch.",
        parsers.taps,
        several=False,
    )
    transform: Words = Option(
        (),
        "Feature transforms to score in addition to plain features: debias:K (removes K positional "
        "directions from patch tokens), whiten, zscore (vectors).",
        parsers.transforms,
        usual="nothing",
    )
    compress: Words = Option(
        (),
        "Score compressed vectors in addition to float32: pca:N, rp:N, first:N, int8, binary, pq:M, or a "
        "chain such as pca:128+int8.",
        parsers.compressions,
        usual="nothing",
    )
    fuse: Words = Option(
        (), "Sets of layers to score jointly, too: last4, quarters, all, pairs.", parsers.sets, usual="none"
    )
    input_size: Option[int | str | Sequence[int | str] | None, tuple[int, ...]] = Option(
        (),
        "Input resolution in pixels; with several (224,448), every backbone is run at each and a table "
        "compares them.",
        parsers.sides,
        usual="each backbone's own resolution",
    )
    interpolation: Plain[InterpolationChoice] = Option(
        "auto", "Interpolation of position embeddings at other resolutions; auto: as the authors do."
    )
    poolings: Words = Option(
        "cls,mean",
        "Image vectors: cls (class token), mean (of the patch tokens), or patchwise (of networks without a "
        "class token: mean after blocks of neighbouring cells were concatenated).",
        parsers.poolings,
        several=False,
    )
    limit: Plain[int | None] = Option(
        None, "Use fewer images per class, videos, pairs, ... for a trial.", least=1, usual="all data"
    )
    floor: Plain[bool] = Option(True, "Also score what nobody learned: random features and raw pixels.")
    examples: Plain[bool] = Option(True, "Save thumbnails and predictions of a few images.")
    again: Plain[bool] = Option(False, "Repeat cost measurements that this device already has.")
    protocol: Words = Option(
        (),
        "Evaluation protocols: standard; paper, as in the code of Teaching Matters; or that of one task, "
        "such as insid3; see `list protocols`.",
        parsers.listed,
        usual="the suite's",
    )
    shots: Wholes = Option(
        (),
        "Training images per class of fewshot, and reference images of anomaly, beside its score with all.",
        least=1,
        usual="10, 1, 5, 25; 1, 4",
    )
    weights: Weights = Option((), WEIGHTS, parsers.weights)

    @property
    def batch(self) -> int:
        """Images per batch where no card has been asked how many are fastest."""
        return 64 if self.batch_size == "auto" else self.batch_size

    @property
    def request(self) -> "Request":
        """The options of a run alone, of a form that has more."""
        return Request(**{each.name: getattr(self, each.name) for each in fields(Request)})
