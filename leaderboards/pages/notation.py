"""The small notation of our own sentences stands with the blocks that it makes."""

from tasks.blocks import said

__all__ = ["said"]
