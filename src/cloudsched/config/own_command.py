"""The command that runs cloudsched in the user's terminal."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_own_command(environment: Mapping[str, str]) -> str:
    """Return how to run cloudsched there: a clone's ``./emulator.sh``, the installed command, or Python.

    ``./emulator.sh`` names itself, since it puts a folder on the path that another terminal does not have.
    """
    if named := environment.get("CLOUDSCHED_COMMAND"):
        return shlex.quote(named)
    found = shutil.which("cloudsched", path=environment.get("PATH", ""))
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "cloudsched"
    return f"{shlex.quote(sys.executable)} -m cloudsched"
