"""The viewer of an embedded app's page, as the surrounding web app identifies them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import is_subject
from cloudsched.errors import Misconfigured
from cloudsched.web.auth.roles import Role, describe_subject

FRAMEWORK_REQUEST: Final = "cloudsched.request"
"""The key in the environ for a framework's own request, for `Identify`."""
_ROLES: Final = (Role.USER, Role.READER, Role.VIEWER, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user whom the web app has authenticated, and what they may do on the page.

    Attributes:
        name: The person: the owner of tasks as whom a user or a reader acts, and the name in the log.
        role: ``user`` sees and changes their own tasks, ``reader`` sees them, ``viewer`` sees all, ``admin``
            changes all.

    Raises:
        Misconfigured: There is no such role, or nobody can have that name.
    """

    name: str
    role: str

    def __post_init__(self) -> None:
        """Check both."""
        if self.role not in _ROLES:
            raise Misconfigured(f"A visitor's role is one of {', '.join(_ROLES)}, and not {self.role!r}.")
        if not is_subject(self.name):
            raise Misconfigured(describe_subject(self.name))


if TYPE_CHECKING:
    from collections.abc import Callable

    Identify = Callable[[Any], Visitor | None]
    """Returns the viewer, given the web app's request or a WSGI environ. None for those without access."""
