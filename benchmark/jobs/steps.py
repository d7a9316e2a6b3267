"""What is expected of a run, step by step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run.

    Attributes:
        backbone: Of which backbone; "" where of several together.
        what: What is done: ``load``, ``pass``, ``vectors``, ``measuring TASK``, ``scoring TASK``, ...
        source: The images that it looks at; "" where at none.
        images: Images that go through the backbone.
        seconds: How long it takes.
        disk: Bytes that it leaves in the cache.
    """

    backbone: str
    what: str
    source: str = ""
    images: int = 0
    seconds: float = 0.0
    disk: int = 0
