"""Read-only questions to Google Cloud, asked through gcloud with the caller's own rights."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

from cloudsched.errors import Misconfigured, Unavailable

TIMEOUT_SECONDS = 120
_NOT_FOUND = re.compile(
    r"not_found|notfound|not found|does not exist\.|cannot find|service_disabled|has not been used", re.IGNORECASE
)


class Gcloud:
    """Asks about one project.

    Args:
        project: The project's id.
    """

    def __init__(self, project: str) -> None:
        self.project = project
        self._program = shutil.which("gcloud") or ""
        if not self._program:
            where = "https://cloud.google.com/sdk/docs/install"
            raise Misconfigured(f"cloudsched doctor --project needs gcloud ({where}); then: gcloud auth login")

    def lines(self, *arguments: str) -> list[str] | None:
        """Return the output's lines; None if there is no such resource.

        Raises:
            Unavailable: gcloud failed, for instance because the caller may not see it.
        """
        command = [self._program, *arguments, f"--project={self.project}", "--quiet"]
        try:
            done = subprocess.run(  # noqa: S603 - gcloud, with arguments of our own
                command, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable("gcloud", f"no answer within {TIMEOUT_SECONDS} s to {' '.join(arguments)}") from error
        if done.returncode == 0:
            return done.stdout.splitlines()
        if _NOT_FOUND.search(done.stderr):
            return None
        raise Unavailable("gcloud", done.stderr.strip()[:500] or f"exit status {done.returncode}")

    def resource(self, *arguments: str) -> Any:  # noqa: ANN401 - any JSON
        """Return a resource, or a list of them; None if there is none."""
        lines = self.lines(*arguments, "--format=json")
        return None if lines is None else json.loads("\n".join(lines) or "null")

    def bindings(self, *arguments: str) -> set[tuple[str, str, str]] | None:
        """Return the role, the member and the title of the condition of each binding of a policy."""
        lines = self.lines(
            *arguments,
            "--flatten=bindings[].members",
            "--format=value(bindings.role,bindings.members,bindings.condition.title)",
        )
        if lines is None:
            return None
        rows = [[*line.split("\t"), "", ""][:3] for line in lines if line.strip()]
        return {(role, member, condition) for role, member, condition in rows}
