"""``python -m cloudsched``: the command line."""

from cloudsched.cli import main

main()
