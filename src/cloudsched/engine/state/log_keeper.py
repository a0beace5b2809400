"""Keep the log of a handler with its run, encrypted.

A task's owner can read its documents in Firestore, and a log may hold what is not for users. The API
shows it to those that may see it. Lines are compressed and encrypted by AES-256 in GCM (NIST SP 800-38D),
with a key that is derived from the settings' secret, and bound to their execution. While a secret is
being rotated, logs of the previous one can be read.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.log_lines import RunLog
from cloudsched.domain.own_logger import own_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run

log: Final = own_logger(__name__)

_NONCE_BYTES = 12
_VERSION = "1."


@dataclass(frozen=True, slots=True)
class LogSeal:
    """The secret that logs are encrypted with, and the previous one. Neither appears in the repr."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)

    def seal(self, found: RunLog, about: str) -> str:
        """Return a log as text that only this secret opens, and only for its execution, which is `about`."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only where something is logged

        nonce = os.urandom(_NONCE_BYTES)
        content = zlib.compress(found.model_dump_json(by_alias=True).encode())
        sealed = nonce + AESGCM(_derive_key(self.current)).encrypt(nonce, content, about.encode())
        return _VERSION + base64.b64encode(sealed).decode()

    def open(self, sealed: str | None, about: str) -> RunLog | None:
        """Return the log, an empty one if there is none, or None if it cannot be read with these secrets."""
        if sealed is None:
            return RunLog()
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only where something is logged
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - likewise

        data = base64.b64decode(sealed.removeprefix(_VERSION))
        for secret in filter(None, (self.current, self.previous)):
            try:
                cipher = AESGCM(_derive_key(secret))
                content = cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], about.encode())
            except InvalidTag:
                continue
            return RunLog.model_validate_json(zlib.decompress(content))
        log.warning(
            "a log cannot be read: it was encrypted with another secret",
            extra={"action": "log_unreadable"},
        )
        return None


def _derive_key(secret: str) -> bytes:
    return hmac.new(secret.encode(), b"cloudsched logs v1", hashlib.sha256).digest()


_CLAIM_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class LogKeeper:
    """Keeps logs with runs, as the settings say."""

    level: int | None
    """The least level that is kept, or None to keep nothing."""
    keeps_print: bool
    """True if what a handler prints counts as lines of INFO."""
    make_seal: Callable[[], LogSeal]
    """Returns the seal that encrypts them. Called when there is something to keep, or to read."""

    def accept(self, run: Run, reported: RunLog | None, now: datetime) -> RunLog | None:
        """Return a worker's reported log as lines of this attempt, or None if nothing is kept.

        Lines from before the claim, or from the future, get the nearest instant of the claim's time.
        """
        if self.level is None or reported is None or run.lease is None:
            return None
        levels = logging.getLevelNamesMapping()
        since = run.lease.started_at
        lines = [
            line.model_copy(update={"at": max(since, min(line.at, now)), "attempt": run.attempt}).cut()
            for line in reported.lines
            if levels.get(line.level, self.level) >= self.level
        ]
        return RunLog(omitted_lines=reported.omitted_lines).add(lines)

    def keep(self, task_id: str, run: Run, token_hash: str, found: RunLog) -> Run:
        """Return a run with all that the holder of a lease has logged, behind the lines from before its claim."""
        about = f"{task_id}/{run.execution_id}"
        seal = self.make_seal()
        kept = (seal.open(run.log, about) or RunLog()).with_lines_of(token_hash[:_CLAIM_CHARACTERS], found)
        return run.model_copy(update={"log": seal.seal(kept, about)})

    def read(self, task_id: str, execution_id: str, sealed: str | None) -> RunLog | None:
        """Return the log of an execution, or None if it cannot be read any more."""
        return RunLog() if sealed is None else self.make_seal().open(sealed, f"{task_id}/{execution_id}")
