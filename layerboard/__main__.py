"""Entry point of ``python -m layerboard``."""

from layerboard.benchmark.commands.app import main

if __name__ == "__main__":
    main()
