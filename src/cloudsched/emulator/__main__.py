"""`python -m cloudsched.emulator`."""

from cloudsched.emulator.cli import emulator

emulator()
