"""Entry point of ``python -m benchmark``."""

from benchmark.commands.app import main

if __name__ == "__main__":
    main()
