"""Commands and options that are gone, and the line that does now what they did."""

from collections.abc import Mapping

# The line has capitals for what the user has.
FORMER: Mapping[str, str] = {
    "check --copies": "check --images DIR",
    "check --digests": "check --all",
    "check --output": "check --weights NAME",
    "cost": "run --tasks cost",
    "cost --index": "score index --features FILE",
    "data": "pack DIR --to PACK",
    "decompose --address": "decompose spair --engine ray:HOST:PORT",
    "decompose --dtype --input-size": "decompose spair --backbones NAME@VALUE",
    "decompose --fast-resize": "decompose spair --backbones NAME@fast-resize",
    "decompose --from-tap": "decompose spair --from PROTOCOL+final",
    "decompose --from-transform": "decompose spair --from PROTOCOL+debias:K",
    "decompose --images --labels --groups --target --copies": "decompose spair --data DIR",
    "decompose --store-dtype --compile": "decompose spair",
    "decompose --tap --to-tap": "decompose spair --to PROTOCOL+final",
    "decompose --taps": "decompose spair",
    "decompose --transform --to-transform": "decompose spair --to PROTOCOL+debias:K",
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
    "submit": "submission write FOLDER",
    "verify": "submission verify FOLDER",
    "verify --weights": "check --weights NAME",
}


def line_now(command: str, option: str) -> str:
    """The line for an option of a command that is gone, however it is spelled; "" for any other."""
    flag = option.replace("_", "-")
    parts = ((former.split(" --"), line) for former, line in FORMER.items())
    return next((line for (name, *flags), line in parts if name == command and flag in flags), "")
