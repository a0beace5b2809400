"""The fixtures of commands, for the folders of satellites that have one: ``from … import *`` in a conftest."""

from tests.cli.conftest import (
    _preview_from_the_start,
    _put_process_back,
    _shorten_pauses,
    calendars,
    reset_app,
    run_command,
    tasks,
    url,
)

__all__ = [
    "_preview_from_the_start",
    "_put_process_back",
    "_shorten_pauses",
    "calendars",
    "reset_app",
    "run_command",
    "tasks",
    "url",
]
