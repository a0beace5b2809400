"""Encrypt what handlers log, because a task's owner can read its documents in Firestore.

A log may hold what is not for users; the API shows it to those that may see it. Lines
are compressed and encrypted by AES-256 in GCM (NIST SP 800-38D), with a key that is derived from the settings' secret,
and bound to their execution. While a secret is being rotated, logs of the previous one can be read.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import zlib
from dataclasses import dataclass, field

from cloudsched.domain.documents.log_lines import RunLog

log = logging.getLogger(__name__)

_NONCE_BYTES = 12
_VERSION = "1."


@dataclass(frozen=True, slots=True)
class LogSeal:
    """The secret that logs are encrypted with, and the previous one. Neither appears in the repr."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)

    def seal(self, found: RunLog, about: str) -> str:
        """Return a log as text that only this secret opens, and only for what it is about: its execution."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only where something is logged

        nonce, content = os.urandom(_NONCE_BYTES), zlib.compress(found.model_dump_json(by_alias=True).encode())
        sealed = nonce + AESGCM(_derive_key(self.current)).encrypt(nonce, content, about.encode())
        return _VERSION + base64.b64encode(sealed).decode()

    def open(self, sealed: str | None, about: str) -> RunLog | None:
        """Return the log; an empty one if there is none, None if it cannot be read with these secrets."""
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
        log.warning("a log cannot be read: it was encrypted with another secret", extra={"action": "log_unreadable"})
        return None


def _derive_key(secret: str) -> bytes:
    return hmac.new(secret.encode(), b"cloudsched logs v1", hashlib.sha256).digest()
