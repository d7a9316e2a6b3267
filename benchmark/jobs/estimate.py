"""Durations of passes and scores, guessed from shapes."""

from layerboard.benchmark.jobs.job import Job, ScoreJob, Setup
from layerboard.benchmark.plan.plan import view_for
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.view.views import View

# assumed multiply-adds per second of a device; they decide the order of work and how it is split
SPEED = {"cpu": 5e10, "cuda": 1e13}
OVERHEAD = {"cpu": 2e-3, "cuda": 5e-4}  # seconds per image besides the forward pass: decode, measure, write
# seconds of a score per image of a layer and pooling, including its share of the interval
ITEM_SECONDS = 5e-5
USUAL_PHOTO = (640, 480)  # assumed pixels per image; the real number would require opening them


def multiply_adds(spec: BackboneSpec, pixels: int) -> float:
    """Approximate multiply-adds of the forward pass of an image: the matrix products of the blocks.

    A transformer block has 12 x width^2 per token, and 2 x width per pair of tokens; a bottleneck block of a
    ConvNet about width^2 per cell; an untrained baseline has no products.
    """
    total, weights = 0.0, 0 if spec.is_floor else 1 if spec.is_convnet else 12
    for stage in spec.stages:
        cells = pixels / stage.stride**2
        pairs = 2 * cells**2 * stage.width if spec.heads and len(spec.stages) == 1 else 0.0
        total += stage.blocks * (weights * stage.width**2 * cells + pairs)
    return total


def image_seconds(setup: Setup, view: View) -> float:
    """Seconds per image in a view of a source."""
    width, height = view_for(setup.spec, view).geometry(USUAL_PHOTO).size
    return pixels_seconds(setup, width * height)


def pixels_seconds(setup: Setup, pixels: int) -> float:
    """Seconds per image of so many pixels."""
    kind = setup.device.type
    return multiply_adds(setup.spec, pixels) / SPEED[kind] + OVERHEAD[kind]


def score_seconds(job: ScoreJob) -> float:
    """Seconds of the scores of a task, from shapes."""
    setup, task = job.setup, job.task
    poolings = len(setup.poolings) if task.vector_sources else 1
    items = ITEM_SECONDS * len(setup.layers) * sum(len(source.samples) for source in task.sources)
    return poolings * (items + product_seconds(setup, task.products))


def vector_bytes(setup: Setup) -> int:
    """Bytes of the stored vectors of an image."""
    channels = sum(setup.spec.stage_of(layer).width for layer in setup.stored_layers)
    poolings = [part for each in setup.spec.poolings_of(setup.poolings) for part in each.split("+")]
    return channels * len(poolings) * (2 if setup.request.store_dtype == "float16" else 4)


def view_bytes(job: Job) -> int:
    """Bytes of all images of a pass in the view that the backbone is shown."""
    width, height = job.source.view.geometry(USUAL_PHOTO).size
    return 3 * width * height * len(job.source.samples)


def product_seconds(setup: Setup, products: float) -> float:
    """Seconds of that many products per channel, for each layer of a backbone."""
    return products * setup.spec.width * len(setup.layers) / SPEED[setup.device.type]
