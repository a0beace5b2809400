"""Who may do what: one small table.

=========== ================== ===========
role        sees               changes
=========== ================== ===========
``user``    their own tasks    their own
``reader``  their own tasks    nothing
``viewer``  everybody's tasks  nothing
``admin``   everybody's tasks  everybody's
=========== ================== ===========

Whoever sees only their own gets the same answer for another's task as for one that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cloudsched.errors import Forbidden, NotFound


class Right(StrEnum):
    """What an operation does to what its caller may see."""

    READ = "read"
    WRITE = "write"


class Role(StrEnum):
    """What a caller is to this API."""

    USER = "user"
    READER = "reader"
    VIEWER = "viewer"
    ADMIN = "admin"


_WRITERS: Final = frozenset({Role.USER, Role.ADMIN})
_SEE_ALL: Final = frozenset({Role.VIEWER, Role.ADMIN})


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who has proved who they are.

    Attributes:
        subject: Who it is, for the log: ``user:…``, ``account:…`` or ``key:…``.
        role: What they may do.
        own: The owner that they are themselves; None for a server that is nobody's.
    """

    subject: str
    role: Role
    own: str | None

    @property
    def only(self) -> str | None:
        """The one owner whose tasks they see; None if they see all."""
        return None if self.role in _SEE_ALL else self.own

    def require(self, right: Right) -> None:
        """Check that their role has a right.

        Raises:
            Forbidden: It has not.
        """
        if self.role not in _SEE_ALL and self.own is None:
            raise Forbidden(f"The role {self.role} sees only its own tasks, and this caller is nobody's owner.")
        if right is Right.WRITE and self.role not in _WRITERS:
            raise Forbidden(f"The role {self.role} changes nothing.")

    def sees(self, owner: str) -> bool:
        """Return whether an owner's tasks are there for them."""
        return self.only is None or self.only == owner

    def owner_of_new(self, given: object) -> object:
        """Return whose a new task is, or whose tasks a list is about: what was `given`, or the caller's own.

        Raises:
            Forbidden: It is somebody else's.
        """
        if given is None:
            return self.own
        if self.only is not None and given != self.only:
            raise Forbidden("The owner is you; leave it out, or give your own.")
        return given

    def require_inbox(self, owner: str) -> None:
        """Check that an inbox is theirs to see. Raises NotFound, whether or not it exists."""
        if not self.sees(owner):
            raise NotFound("inbox", owner)


ANYBODY: Final = Caller("anybody", Role.ADMIN, None)
"""The caller of an API that is open, as on the local stack."""
