"""Creating a task so that asking again is safe.

Two ways. An ``id`` of the caller's own: creating the same again is an edit that changes nothing. Or ``Idempotency-Key``
(draft-ietf-httpapi-idempotency-key-header): the task's id is derived from its owner and the key, and the task keeps a
hash of what was asked for. The record of the key is the task itself, so it costs no read and no write of its own, and
holds as long as the task does.

Ids of users: a user cannot see others' tasks, so what they choose must not meet others' ids. A hash of the owner is put
in front of it, unless it is there already.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.domain.documents.task import Task
    from cloudsched.web.auth.roles import Caller

IDEMPOTENCY_HEADER = "Idempotency-Key"
KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"
_KEY = re.compile(KEY_PATTERN)


def read_idempotency_key(request: Request) -> str | None:
    """Return the request's idempotency key, if it has one.

    Raises:
        InvalidInput: It is none.
    """
    key = request.headers.get(IDEMPOTENCY_HEADER)
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidInput(
            IDEMPOTENCY_HEADER, "is not a key", "Give 1 to 255 visible ASCII characters, such as a UUID."
        )
    return key


def create_or_edit(app: App, caller: Caller, content: dict[str, Any], key: str | None) -> tuple[Task, bool]:
    """Create a task as a caller asks for it, or edit the one of the same id; return it, and whether it is new.

    Raises:
        Forbidden: It would be somebody else's.
        InvalidInput: Something in it is wrong.
        KeyReused: The key came before, with something else.
    """
    owner = caller.resolve_owner(content.get("owner"))
    content = {**content, **({} if owner is None else {"owner": owner})}
    given = content.get("id")
    if key is not None and given is not None:
        raise InvalidInput(
            IDEMPOTENCY_HEADER, "stands beside an id", "An id alone is safe to repeat; leave one of the two out."
        )
    if key is not None:
        draft = app.read_draft({**content, "id": f"k{_hash([owner, key])[:32]}"})
        return app.put(draft, mark=_hash(content))
    if caller.visible_owner is not None and isinstance(given, str):
        prefix = owner_id_prefix(caller.visible_owner)
        content["id"] = given if given.startswith(prefix) else prefix + given
    return app.put(app.read_draft(content))


def owner_id_prefix(owner: object) -> str:
    """Return what the ids begin with that an owner has chosen."""
    return f"u{_hash(owner)[:16]}-"


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
