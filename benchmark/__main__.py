"""Entry point of ``python -m benchmark`` in the checkout."""

from layerboard.benchmark.commands.app import main

if __name__ == "__main__":
    main()
