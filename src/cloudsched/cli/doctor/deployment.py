"""The deployment that the doctor checks: the names of its resources, gcloud's answers, and the result of a check."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.policy import Priority
from cloudsched.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_SECONDS = 120
_NOT_FOUND = re.compile(
    r"not_found|notfound|not found|does not exist\.|cannot find|service_disabled|has not been used", re.IGNORECASE
)


class Gcloud:
    """Asks about one project."""

    def __init__(self, project: str) -> None:
        self.project = project
        self._program = shutil.which("gcloud") or ""
        if not self._program:
            where = "https://cloud.google.com/sdk/docs/install"
            raise Misconfigured(f"to look at a deployment, cloudsched doctor needs gcloud ({where}); gcloud auth login")

    def lines(self, *arguments: str) -> list[str] | None:
        """Return the output's lines, None if there is no such resource. Raises Unavailable if gcloud failed."""
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
        """Return a resource, or a list of them, None if there is none."""
        lines = self.lines(*arguments, "--format=json")
        return None if lines is None else json.loads("\n".join(lines) or "null")

    def bindings(self, *arguments: str) -> set[tuple[str, str]] | None:
        """Return the role and the member of each binding of a policy."""
        lines = self.lines(*arguments, "--flatten=bindings[].members", "--format=value(bindings.role,bindings.members)")
        if lines is None:
            return None
        return {(role, member) for role, _, member in (line.partition("\t") for line in lines) if role}

    def token(self, account: str, audience: str = "") -> str:
        """Return an identity token of a service account, for whoever may impersonate it, such as the account itself."""
        words = (f"--impersonate-service-account={account}", f"--audiences={audience}", "--include-email")
        lines = self.lines("auth", "print-identity-token", *words)
        if not lines:
            raise Unavailable("gcloud", f"there is no token of {account}")
        return lines[-1]


PRIORITIES = tuple(each.lower() for each in Priority)
QUEUES = (*PRIORITIES, "hops")
FUNCTIONS = ("execute", "sweep", "api")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment to check."""

    gcloud: Gcloud
    region: str
    name: str
    config: Path | None = None
    """Its configuration, if one was given."""
    configured_database: str = ""
    """The database that it names, if it names one."""
    database: str = ""
    """The database that its functions use, once it has been read."""
    queues_per_priority: int = 1
    """The number of queues over which the API spreads each priority's dispatches."""

    def queue(self, kind: str) -> str:
        """Return the name of a queue: of a priority, such as ``high`` or ``high-q2``, of a channel, or of hops."""
        priority, _, number = kind.partition("-")
        first = self.name if priority == "normal" else f"{self.name}-{priority}"
        return f"{first}-{number}" if number else first

    def list_queues(self) -> list[str]:
        """Return the kinds of its queues."""
        numbers = range(2, self.queues_per_priority + 1)
        return [*QUEUES, *(f"{each}-q{number}" for each in PRIORITIES for number in numbers)]

    def script(self, *words: str) -> str:
        """Return the command line of a script, such as ``upgrade.sh``, for this deployment."""
        name, *options = words
        config = [] if self.config is None else [f"--config={self.config}"]
        return shlex.join([f"infra/{name}", *config, *options])

    def deploy(self, step: str) -> str:
        """Return the command that brings a step in line with the configuration."""
        return self.script("deploy.sh", f"--step={step}")

    def place(self, flag: str = "region") -> str:
        """Return the flags by which gcloud finds its resources, with --region or --location."""
        return f"--{flag}={self.region} --project={self.gcloud.project}"


class Verdict(StrEnum):
    """The result of one check."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """It could not be checked."""
    SKIPPED = "skipped"
    """It was not requested, or does not apply here."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check, with the command that fixes what is wrong. Without a problem, that is empty."""

    area: str
    verdict: Verdict
    what: str
    mend: str = ""

    @property
    def is_well(self) -> bool:
        """Return whether you need not act on it."""
        return self.verdict in {Verdict.OK, Verdict.SKIPPED}


def ok(area: str, what: str) -> CheckResult:
    """Report that the check passed."""
    return CheckResult(area, Verdict.OK, what)


def wrong(area: str, what: str, mend: str) -> CheckResult:
    """Report a problem, and the command that fixes it."""
    return CheckResult(area, Verdict.WRONG, what, mend)


def unknown(area: str, what: str, mend: str) -> CheckResult:
    """Report that a check could not be made, and what the caller needs for it."""
    return CheckResult(area, Verdict.UNKNOWN, what, mend)


def skipped(area: str, what: str) -> CheckResult:
    """Report that a check was skipped on purpose."""
    return CheckResult(area, Verdict.SKIPPED, what)
