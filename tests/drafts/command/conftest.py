"""The command line's fixtures, for the commands of this folder."""

from tests.cli.conftest import (
    _preview_from_the_start,
    _put_process_back,
    _shorten_pauses,
    reset_app,
    run_command,
    tasks,
    url,
)

__all__ = [
    "_preview_from_the_start",
    "_put_process_back",
    "_shorten_pauses",
    "reset_app",
    "run_command",
    "tasks",
    "url",
]
