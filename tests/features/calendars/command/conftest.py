"""The command line's fixtures."""

from tests.cli.command_fixtures import *  # noqa: F403 - they are listed there
