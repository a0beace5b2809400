"""A deployment's configuration, read as the scripts of ``infra`` read it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from pathlib import Path

DEFAULTS = {
    "PROJECT": "",
    "NAME": "cloudsched",
    "REGION": "us-central1",
    "DATABASE": "",
    "SMOKE_HANDLER": "remind",
    "SMOKE_PAYLOAD": '{"text": "cloudsched works"}',
}
"""The settings that the doctor reads from the scripts' configuration, with their defaults."""
_READ = """set -eo pipefail
file="$1"
shift
for each; do printf -v "${each%%=*}" %s "${each#*=}"; done
source "$file" >&2
for each; do name="${each%%=*}" && printf '%s\\0' "${!name}"; done"""


def read_configuration(file: Path) -> dict[str, str]:
    """Return the settings in a configuration of ``infra/*.sh``. It is run as bash, as the scripts run it.

    Raises:
        Misconfigured: There is no bash, it failed, or no project is named.
    """
    if not file.is_file():
        raise Misconfigured(f"{file} does not exist")
    program = shutil.which("bash")
    if program is None:
        raise Misconfigured("cloudsched doctor --config needs bash, as the scripts do")
    done = subprocess.run(  # noqa: S603 - the operator's own file
        [program, "-c", _READ, "bash", str(file.absolute()), *map("=".join, DEFAULTS.items())],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Misconfigured(f"{file} cannot be read: {done.stderr.strip()[-500:] or 'it ended with an error'}")
    found = dict(zip(DEFAULTS, done.stdout.split("\0"), strict=False))
    if not found["PROJECT"]:
        raise Misconfigured(f"{file} names no PROJECT: set it to your project's ID")
    return found
