"""``python -m cloudsched``: the command line."""

from cloudsched.cli.main import main

main()
