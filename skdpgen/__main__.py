"""``python -m skdpgen`` is the command line."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="skdpgen")
