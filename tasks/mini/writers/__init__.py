"""Writers of the six mini datasets."""

from tasks.mini.writers import coco, davis, imagenet, partimagenet, revisitop, spair
from tasks.mini.writers.base import Writer

WRITERS: tuple[Writer, ...] = (
    imagenet.WRITER,
    revisitop.WRITER,
    davis.WRITER,
    spair.WRITER,
    coco.WRITER,
    partimagenet.WRITER,
)
