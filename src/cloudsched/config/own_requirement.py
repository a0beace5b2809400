"""Find the requirement that installs cloudsched from where it came: an index, a repository or a file."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname


class OwnRequirement(NamedTuple):
    """The part of a requirement (PEP 508) after the name ``cloudsched`` and its extras.

    Attributes:
        specifier: A version that an index has, or a direct reference.
        local_path: The clone or file on this machine that it names. None if other machines can reach it, too.
    """

    specifier: str
    local_path: Path | None = None

    def with_extra(self, extra: str) -> str:
        """Return the whole requirement, with an extra."""
        if self.specifier.startswith(">="):
            return f"cloudsched[{extra}]"
        return f"cloudsched[{extra}]{self.specifier}"

    @property
    def pinned(self) -> str:
        """The package to deploy: of an index exactly this version, so that it installs what was tested."""
        return re.sub("^>=", "==", self.specifier)


def find_own_requirement() -> OwnRequirement:
    """Return the requirement for what is installed here: from an index, a repository, an archive or a folder."""
    own = distribution("cloudsched")  # raises PackageNotFoundError for a checkout on the path
    return read_own_requirement(own.version, own.read_text("direct_url.json"))


def read_own_requirement(version: str, direct_url: str | None) -> OwnRequirement:
    """Return the requirement for a version, by the ``direct_url.json`` of its installation (PEP 610).

    A folder or file that no longer exists is no help: the version is required instead.
    """
    origin: dict[str, Any] = json.loads(direct_url or "{}")
    url = origin.get("url", "")
    if not url:
        return OwnRequirement(f">={version}")
    folder = f"#subdirectory={origin['subdirectory']}" if origin.get("subdirectory") else ""
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return OwnRequirement(f" @ {vcs['vcs']}+{url}@{vcs['commit_id']}{folder}")
    if urlsplit(url).scheme != "file":
        return OwnRequirement(f" @ {url}{folder}")
    path = Path(url2pathname(urlsplit(url).path))
    return OwnRequirement(f" @ {url}{folder}", path) if path.exists() else OwnRequirement(f">={version}")
