"""Stored vectors as files: the command `features` and `layerboard.features`."""

from collections import Counter

from layerboard.benchmark.commands.command import command, ended_by_signals, exit_code
from layerboard.benchmark.commands.result import Files
from layerboard.benchmark.commands.run import ProgressOption, require_names
from layerboard.benchmark.forms.option import called_with
from layerboard.benchmark.forms.request import PassOptions, Request, VariantOptions
from layerboard.zoo.errors import counted


class FeaturesCall(ProgressOption, VariantOptions, PassOptions):
    """Options of `layerboard.features`: those of the command, and variants of all backbones."""


@command("features", PassOptions)
def features_command(given: PassOptions) -> int:
    """Write features as NumPy files, for `score` or your own code.

    Features that are not in the cache are extracted first. One file per layer and pooling:
    OUTPUT/features/BACKBONE/TASK.DATASET.PROTOCOL/LAYER.POOLING.npz (.npy for cka). The options are those of
    `run`, as far as they concern vectors; names such as dino-b16@448px or dino-b16@bfloat16 are variants.

    Example: `layerboard features -b dino-b16 -t knn --images MY_FOLDER --layers 8-12 --poolings cls`
    """
    request = Request.of(given)
    require_names(request)
    with ended_by_signals("interrupted; finished work is kept, run again to continue") as report:
        from layerboard.benchmark.vectors import write_vectors

        done = write_vectors(request, report)
    report.say(f"{done.images or 'no'} {'image' if done.images == 1 else 'images'} went through a backbone")
    for line in done.unreadable:
        report.say(f"left out: {line}")
    for failure in done.failures:
        report.say(f"failed: {failure}")
    for folder, count in Counter(file.path.parent for file in done.files).items():
        report.say(f"wrote {counted(count, 'files')} in {folder}")
    for option, path in {file.command: file.path for file in done.files}.items():
        report.say(f"for example: layerboard {option} {path}")
    return exit_code(done.failures)


@called_with(FeaturesCall)
def features(call: FeaturesCall) -> Files:
    """Write the vectors of backbones, layers and poolings as files for ``score`` or any other code.

    Does what ``layerboard features`` does, with its options and those that show every backbone otherwise.
    ``frame`` has one row per file: backbone, task, layer, pooling and path.

    Example:
        >>> import layerboard
        >>> import numpy as np
        >>> written = layerboard.features("mini-dino", "knn", images="photos", layers="11,12", poolings="cls")
        >>> written.frame[["backbone", "layer", "pooling"]].values.tolist()
        [['mini-dino', '11', 'cls'], ['mini-dino', '12', 'cls']]
        >>> np.load(written.paths[0])["train"].shape[1]
        96
    """
    request = Request.of(call)
    require_names(request)
    import pandas as pd

    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.vectors import write_vectors

    done = write_vectors(request, reporter_for(call.progress))
    rows = [
        (file.backbone, file.path.parent.name, *file.path.stem.rsplit(".", 1), str(file.path))
        for file in done.files
    ]
    failures = tuple(map(str, done.failures))
    left_out = [f"Left out: {reason}." for reason in done.unreadable]
    return Files(
        title=f"{counted(len(done.files), 'files')} of vectors",
        frame=pd.DataFrame(rows, columns=["backbone", "task", "layer", "pooling", "path"]),
        notes=(*left_out, *(f"Failed: {failure}" for failure in failures)),
        paths=tuple(file.path for file in done.files),
        failures=failures,
    )
