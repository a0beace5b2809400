"""`python -m cloudsched.emulator`."""

import sys

from cloudsched.emulator.cli import emulator

try:
    emulator()
except ModuleNotFoundError as error:
    sys.exit(f"cloudsched.emulator: {error}")
