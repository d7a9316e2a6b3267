"""Stored vectors as files: the command `features` and `layerboard.features`."""

from collections import Counter

from layerboard.benchmark.commands.command import exit_code, public
from layerboard.benchmark.commands.result import Files
from layerboard.benchmark.commands.run import require_names
from layerboard.benchmark.forms.request import ProgressOption, Request
from layerboard.zoo.errors import counted


class FeaturesForm(ProgressOption, Request):
    """Options of `features`: those of a run that name data, backbones and vectors."""

    takes = (
        "campaign data images labels groups backbones weights tasks "
        "layers poolings device cache workers output progress"
    )


@public("features", FeaturesForm, "finished work is kept, run again to continue")
def features(call: FeaturesForm) -> Files:
    """Write features as NumPy files, for `score` or your own code.

    Features that are not in the cache are extracted first. One file per layer and pooling:
    OUTPUT/features/BACKBONE/TASK.DATASET.PROTOCOL/LAYER.POOLING.npz (.npy for cka). The options are those of
    `run` that name data, backbones and vectors. What else concerns vectors (protocol, taps, limit, ...) is
    that of a campaign; `--campaign results` takes all of an earlier run. Names such as dino-b16@448px or
    dino-b16@bfloat16 are variants.

    Example: `layerboard features -b dino-b16 -t knn --images MY_FOLDER --layers 8-12 --poolings cls`

    Returns:
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
    require_names(call)
    import pandas as pd

    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.vectors import write_vectors

    report = reporter_for(call.progress)
    done = write_vectors(call, report)
    folders = Counter(file.path.parent for file in done.files)
    examples = {file.command: file.path for file in done.files}
    report.say(
        f"{done.images or 'no'} {'image' if done.images == 1 else 'images'} went through a backbone",
        *(f"left out: {line}" for line in done.unreadable),
        *(f"failed: {failure}" for failure in done.failures),
        *(f"wrote {counted(count, 'files')} in {folder}" for folder, count in folders.items()),
        *(f"for example: layerboard {option} {path}" for option, path in examples.items()),
    )
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
        lines=(),  # which the reporter has said
        status=exit_code(done.failures),
    )
