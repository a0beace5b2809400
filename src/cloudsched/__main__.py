"""The ``cloudsched`` command, and ``python -m cloudsched``: starts the command line if its packages are installed."""

import sys

from cloudsched.config.imports import require_extra
from cloudsched.errors import MissingExtra


def main() -> None:
    """Run the command line. Without click there is none: only the extras bring it for certain."""
    try:
        with require_extra("cloudsched's command line", "server"):
            from cloudsched.cli.exit import own_process  # noqa: PLC0415 - the same package
            from cloudsched.cli.main import main as run  # noqa: PLC0415 - it imports click
    except MissingExtra as error:
        sys.exit(f"cloudsched: {error}")
    own_process()
    run()


if __name__ == "__main__":
    main()
