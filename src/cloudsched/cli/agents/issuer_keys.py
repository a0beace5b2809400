"""An authorization server's keys, found from its name alone.

* Its metadata stands at a well-known address (RFC 8414, OpenID Connect Discovery 1.0), and says where the keys are. It
  counts only if its ``issuer`` is the name that was given, to the letter: otherwise one server could pass for another
  (RFC 8414, section 3.3).
* Both are fetched by https and without redirects, from addresses of the public internet, since the metadata could name
  any address: see `adapters.safe_http`. An issuer on this machine may be fetched by http, for development.
* The keys are kept for ten minutes, and for an hour while the issuer does not answer; where they are is kept for an
  hour. A token with an unknown key has them fetched again, but not within half a minute; nor does every request ask an
  issuer that does not answer.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from jwt import PyJWKClient
from jwt.exceptions import PyJWKClientConnectionError
from requests import RequestException

from cloudsched.adapters.safe_http import make_session
from cloudsched.domain.local_requests import is_loopback
from cloudsched.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import requests

log = logging.getLogger(__name__)

KEYS_SECONDS: Final = 600
STALE_SECONDS: Final = 3600
METADATA_SECONDS: Final = 3600
PAUSE_SECONDS: Final = 10
"""How long an issuer that did not answer is left alone."""
MAX_SIZE: Final = 256 * 1024
"""The largest document that is read, in bytes."""
_TIMEOUT_SECONDS: Final = 10
_LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_OK: Final = 200


def list_metadata_addresses(issuer: str) -> list[str]:
    """Return where an issuer's metadata may be, in the order in which it is looked for.

    The well-known part goes between host and path; OpenID Connect appends it, too.
    """
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    names = ("oauth-authorization-server", "openid-configuration")
    appended = [f"{origin}{path}/.well-known/openid-configuration"] if path else []
    return [*(f"{origin}/.well-known/{name}{path}" for name in names), *appended]


class IssuerKeys(PyJWKClient):
    """The keys of one issuer.

    Args:
        issuer: Its name, which is its address.
        reachable: Networks that are not public but may be asked.
        now: Returns how many seconds have passed, to keep what was fetched for so long and no longer.

    Raises:
        Misconfigured: The name is no https address.
    """

    def __init__(self, issuer: str, reachable: Sequence[str] = (), now: Callable[[], float] = time.monotonic) -> None:
        self._is_local = _require_address(issuer, "--issuer")
        super().__init__(issuer, lifespan=KEYS_SECONDS)
        self._issuer = issuer
        self._session = make_session((*reachable, *(_LOOPBACK if self._is_local else ())), max_seconds=_TIMEOUT_SECONDS)
        self._now = now
        self._keys_address: tuple[str, float] | None = None
        self._kept: tuple[dict[str, Any], float] | None = None
        self._silent_until = 0.0
        self._lock = threading.Lock()

    def fetch_data(self) -> Any:  # noqa: ANN401 - as the library has it
        """Fetch the keys. The library calls this.

        Raises:
            PyJWKClientConnectionError: They cannot be had now, and what was fetched before is too old.
        """
        with self._lock:
            keys = self._fetch_keys() if self._now() >= self._silent_until else None
            if keys is not None:
                self._kept = keys, self._now() + STALE_SECONDS
            elif self._kept is None or self._now() >= self._kept[1]:
                raise PyJWKClientConnectionError(f"The issuer {self._issuer} gives no keys.")
            kept = self._kept[0]
        self._last_successful_fetch = time.monotonic()
        return kept

    def _fetch_keys(self) -> dict[str, Any] | None:
        """Return the keys; None if they cannot be had now."""
        try:
            address = self.find_address()
            keys = self._fetch(address)
        except (Misconfigured, OSError) as error:
            self._fall_silent(str(error))
            return None
        if keys is None or not _are_keys(keys.get("keys")):
            self._fall_silent(f"There are no keys at {address}.")
            return None
        return keys

    def _fall_silent(self, problem: str) -> None:
        self._silent_until = self._now() + PAUSE_SECONDS
        log.warning("no keys of the issuer: %s", problem, extra={"action": "issuer_failed"})

    def find_address(self) -> str:
        """Return where the keys are, as the issuer's metadata says.

        Raises:
            Misconfigured: There is no metadata, or it is another issuer's.
            OSError: The issuer does not answer.
        """
        if self._keys_address is not None and self._now() < self._keys_address[1]:
            return self._keys_address[0]
        for address in list_metadata_addresses(self._issuer):
            metadata = self._fetch(address)
            if metadata is not None:
                found = self._check(metadata, address)
                self._keys_address = found, self._now() + METADATA_SECONDS
                return found
        tried = ", ".join(list_metadata_addresses(self._issuer))
        raise Misconfigured(
            f"The issuer {self._issuer} publishes no metadata at {tried}. Say where its keys are: --jwks."
        )

    def _check(self, metadata: dict[str, Any], address: str) -> str:
        named, keys = metadata.get("issuer"), metadata.get("jwks_uri")
        if named != self._issuer:
            shown = str(named)[:200]
            raise Misconfigured(f"{address} is the metadata of {shown!r}. Give that as --issuer, to the letter.")
        if not isinstance(keys, str):
            raise Misconfigured(f"{address} does not say where the keys are (jwks_uri). Say it: --jwks.")
        if _require_address(keys, "jwks_uri") and not self._is_local:
            raise Misconfigured(f"{address} says that the keys are on this machine, at {keys!r}.")
        return keys

    def _fetch(self, address: str) -> dict[str, Any] | None:
        """Return a JSON object; None if there is none at the address. Raises OSError, as requests does."""
        try:
            with self._session.get(address, timeout=_TIMEOUT_SECONDS, allow_redirects=False, stream=True) as response:
                if response.status_code >= 500:  # noqa: PLR2004 - a server's error
                    raise OSError(f"{address} answers with status {response.status_code}")
                text = _read(response) if response.status_code == _OK else b""
        except InvalidInput as error:
            raise Misconfigured(f"{address}: {error}") from error
        except RequestException as error:
            raise OSError(f"{address} does not answer ({type(error).__name__})") from error
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return content if isinstance(content, dict) else None


def _are_keys(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _read(response: requests.Response) -> bytes:
    received = b""
    for part in response.iter_content(16_384):
        received += part
        if len(received) > MAX_SIZE:
            raise OSError(f"{response.url} is longer than {MAX_SIZE} bytes")
    return received


def _require_address(address: str, field: str) -> bool:
    """Return whether an address is on this machine. Raises Misconfigured if it is no https address."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in {"https", "http"} or parts.username is not None:
        raise Misconfigured(f"{field} is {address[:200]!r}; give an address such as https://login.example.com.")
    is_local = is_loopback(host)
    if parts.scheme == "http" and not is_local:
        raise Misconfigured(f"{field} is {address[:200]!r}; it has to begin with https://.")
    return is_local
