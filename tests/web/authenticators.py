"""Authenticators live as long as their process; tests give each other new ones."""

from cloudsched.web.auth import authentication


def clear_authenticators() -> None:
    """Forget all authenticators, with the keys of the token issuers that they have fetched."""
    authentication._cached_authenticator.cache_clear()  # noqa: SLF001 - nothing but tests needs it
