"""Commands and options that are gone, and the line that does now what they did."""

from collections.abc import Mapping

# The line has capitals for what the user has.
FORMER: Mapping[str, str] = {
    "check --backbones": "duplicates DIR --backbones NAME",
    "check --copies": "check --images DIR",
    "check --digests": "check --all",
    "check --features": "duplicates DIR",
    "check --output": "check --weights NAME",
    "cost": "run --tasks cost",
    "cost --index": "score index --features FILE",
    "data": "pack DIR --to PACK",
    "doctor": "check",
    "features --compile": "features",
    "features --dtype --input-size": "features --backbones NAME@VALUE",
    "features --fast-resize": "features --backbones NAME@fast-resize",
    "leaderboard --format": "export csv",
    "leaderboard --format=hub": "export hub",
    "leaderboard --format=latex": "export latex",
    "look --dtype": "look FILE --backbones NAME@VALUE",
    "parity": "compare FIRST SECOND --parity",
    "recommend --may-lose": "recommend --max-loss POINTS",
    "run --address": "run --engine ray:HOST:PORT",
    "run --fast-resize": "run --backbones NAME NAME@fast-resize",
    "score clustering --assignments": "score clustering --predictions FILE",
    "score retrieval --similarity": "score retrieval --predictions FILE --ground-truth FILE",
    "score spair --dataset": "score spair --ground-truth DIR",
    "score task": "score NAME --features FILE",
    "verify --weights": "check --weights NAME",
}


def line_now(command: str, option: str) -> str:
    """The line for an option of a command that is gone, however it is spelled; "" for any other."""
    flag = option.replace("_", "-")
    parts = ((former.split(" --"), line) for former, line in FORMER.items())
    return next((line for (name, *flags), line in parts if name == command and flag in flags), "")
