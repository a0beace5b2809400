"""Who may use the tools over HTTP: a bearer key, or tokens of an OAuth 2.1 authorization server.

* The key is compared in constant time; a wrong or missing one gets 401.
* With OAuth this server is a resource server: it publishes its metadata (RFC 9728), takes only tokens that were issued
  for it (RFC 8707: their audience is its own address), by the issuer, for somebody who can be a user, and that have
  not expired.
* A token needs the scope to read, and for tools that change something, the scope to write, too.
* No token is passed on: the API is called with this server's own key, on behalf of the token's subject.
"""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver.exceptions import ToolError

from cloudsched.domain.documents.authority import is_subject
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    import jwt

    from cloudsched.cli.agents.issuer_keys import IssuerKeys

    Message = MutableMapping[str, Any]
    AsgiApp = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]

MIN_KEY_LENGTH: Final = 16
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
_LEEWAY_SECONDS: Final = 30


def require_bearer(app: AsgiApp, key: str) -> AsgiApp:
    """Return an app that answers 401 to requests without the key.

    Raises:
        Misconfigured: The key is short enough to be guessed.
    """
    if len(key) < MIN_KEY_LENGTH:
        raise Misconfigured(f"A bearer key has at least {MIN_KEY_LENGTH} characters.")
    wanted = f"Bearer {key}".encode()

    async def guarded(scope: Message, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, wanted):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"Send Authorization: Bearer and this server's key."})
            return
        await app(scope, receive, send)

    return guarded


@dataclass(frozen=True)
class OAuth:
    """The authorization server, and this server's own address.

    Attributes:
        issuer: Whose tokens are taken.
        resource: This server's address, with its path: the audience of the tokens.
        jwks_url: Where the issuer's keys are; as its metadata says if None.
        reachable: Networks that are not public, where its metadata and its keys may be.
        read_scope: What a token needs for any tool.
        write_scope: What it needs as well for the tools that change something.
    """

    issuer: str
    resource: str
    jwks_url: str | None = None
    reachable: tuple[str, ...] = ()
    read_scope: str = "tasks:read"
    write_scope: str = "tasks:write"

    @property
    def settings(self) -> AuthSettings:
        """The settings that the SDK publishes and checks."""
        fields = {
            "issuer_url": self.issuer,
            "resource_server_url": self.resource,
            "validate_token_resource": True,
            "required_scopes": [self.read_scope],
        }
        return AuthSettings.model_validate(fields)

    @property
    def metadata_routes(self) -> list[Any]:
        """The routes of this server's metadata (RFC 9728). The SDK's own names the scope that every tool needs."""
        settings = self.settings
        assert settings.resource_server_url is not None  # noqa: S101 - it was given
        return create_protected_resource_routes(
            settings.resource_server_url, [settings.issuer_url], [self.read_scope, self.write_scope]
        )

    def require_write(self) -> None:
        """Check that the token of the request at hand may change something. Raises ToolError."""
        token = get_access_token()
        if token is None or self.write_scope not in token.scopes:
            text = f"The token is for reading: it lacks the scope {self.write_scope!r}. The user has to grant it."
            raise ToolError(text)

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        if self.jwks_url is None:
            return self._issuer_keys
        from jwt import PyJWKClient  # noqa: PLC0415 - only with OAuth

        return PyJWKClient(self.jwks_url, cache_keys=True, lifespan=600, timeout=10)

    @cached_property
    def _issuer_keys(self) -> IssuerKeys:
        from cloudsched.cli.agents.issuer_keys import IssuerKeys  # noqa: PLC0415 - only with OAuth

        return IssuerKeys(self.issuer, self.reachable)

    def check_issuer(self) -> None:
        """Check that the issuer's keys can be found.

        Raises:
            Misconfigured: The issuer is no such server, or is called otherwise.
            OSError: It does not answer now.
        """
        if self.jwks_url is None:
            self._issuer_keys.find_address()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token allows; None if it is not valid here. The SDK calls this."""
        return await asyncio.to_thread(self._verify, token)

    def _verify(self, token: str) -> AccessToken | None:
        import jwt  # noqa: PLC0415 - only with OAuth

        try:
            claims = jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token).key,
                algorithms=_ALGORITHMS,
                audience=self.resource,
                issuer=self.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None
        subject = claims["sub"]
        if not is_subject(subject):
            return None
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            scopes=_find_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self.resource,
            subject=subject,
        )


def _find_scopes(claims: dict[str, Any]) -> list[str]:
    """Return what a token is for: RFC 9068's ``scope``, or ``scp``, which some issuers have as a list."""
    listed = claims.get("scope", claims.get("scp", ()))
    if isinstance(listed, str):
        return listed.split()
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def find_subject() -> str:
    """Return for whom the request at hand is made: the subject of its token."""
    token = get_access_token()
    if token is None or not token.subject:
        raise PermissionError("The request has no token.")
    return token.subject
