"""Writers of the mini datasets."""

from workshop.render.writers import (
    coco,
    davis,
    defects,
    imagenet,
    partimagenet,
    revisitop,
    sop,
    spair,
    targets,
    voc,
)
from workshop.render.writers.base import Writer

WRITERS: tuple[Writer, ...] = (
    imagenet.WRITER,
    revisitop.WRITER,
    davis.WRITER,
    spair.WRITER,
    coco.WRITER,
    partimagenet.WRITER,
    voc.WRITER,
    defects.WRITER,
    sop.WRITER,
    targets.WRITER,
)
