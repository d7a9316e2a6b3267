"""Entry point of ``python -m benchmark`` where the package is installed."""

from layerboard.benchmark.commands.app import main

if __name__ == "__main__":
    main()
