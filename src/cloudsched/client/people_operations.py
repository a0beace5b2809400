"""The operations of the API on people, as flows that both clients run."""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.client.flow import ApiRequest, Flow, Pause, operation
from cloudsched.client.responses import parse_task
from cloudsched.client.views import PersonView, TaskView, reader
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.responses import ExportPage, UnreadCount, WebhookSecret

_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 10.0
_EXPORT_TIMEOUT: Final = 3600.0
"""How long to wait for an export, in seconds."""


class PeopleOperations:
    """The methods of `Client` and `AsyncClient` for people's contacts and preferences."""

    @operation
    def person(self, owner: str) -> Flow[PersonView]:
        """Return a person's contacts and preferences. Raises NotFound."""
        return (yield ApiRequest("GET", _person_path(owner))).read("a person", reader(PersonView))

    @operation
    def put_person(self, /, owner: str, **fields: Any) -> Flow[PersonView]:
        """Set a person's contacts and preferences, in place of what there was (docs/how-to/people.md).

        Args:
            owner: Whose they are.
            fields: `name`, `email`, `devices`, `webhook`, `timezone`, `locale`, `channels`, as the API takes them:
                ``email={"address": "ada@example.com"}``.
        """
        content = {to_camel(name): value for name, value in fields.items()}
        answer = yield ApiRequest("PUT", _person_path(owner), content, is_idempotent=True)
        return answer.read("a person", reader(PersonView))

    @operation
    def delete_person(self, owner: str) -> Flow[None]:
        """Delete a person's contacts and preferences; their tasks stay."""
        yield ApiRequest("DELETE", _person_path(owner))

    @operation
    def erase_person(self, owner: str) -> Flow[TaskView]:
        """Start to delete all that is stored of a person: tasks, executions, inbox, feeds, contacts.

        Returns the task that does it; safe to repeat.
        """
        return parse_task((yield ApiRequest("DELETE", _person_path(owner), query={"everything": "true"})))

    @operation
    def export_person(self, owner: str) -> Flow[str]:
        """Return all that is stored of a person, as lines of JSON, once it has been put together.

        Raises:
            TimeoutError: It was not ready within an hour.
        """
        texts: list[str] = []
        query: dict[str, str] = {}
        pause, path = _FIRST_PAUSE, f"{_person_path(owner)}/export"
        until = time.monotonic() + _EXPORT_TIMEOUT
        while True:
            answer = yield ApiRequest("POST", path, {}, query=query, is_idempotent=True)
            if "text" in answer.content:
                page = answer.read("an export", reader(ExportPage))
                texts.append(page.text)
                if page.next_page_token is None:
                    return "".join(texts)
                query = {"pageToken": page.next_page_token}
            elif time.monotonic() > until:
                raise TimeoutError(f"The export of {owner} is not ready. Its task may say why.")
            else:
                yield Pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    @operation
    def verify_webhook(self, owner: str) -> Flow[PersonView]:
        """Have a person's webhook asked whether it wants their messages. Raises InvalidInput if it does not say so."""
        answer = yield ApiRequest("POST", f"{_person_path(owner)}/webhook/verify", {})
        return answer.read("a person", PersonView.model_validate)

    @operation
    def mark_read(self, owner: str, message_id: str) -> Flow[Message]:
        """Mark a message in an owner's inbox as read, and return it."""
        path = f"{_inbox_path(owner)}/messages/{quote(message_id, safe='')}/read"
        return (yield ApiRequest("POST", path, {}, is_idempotent=True)).read("a message", reader(Message))

    @operation
    def unread(self, owner: str) -> Flow[int]:
        """Return how many messages in an owner's inbox are unread; 1000 stands for that many or more."""
        answer = yield ApiRequest("GET", f"{_inbox_path(owner)}/unread")
        return answer.read("a count", reader(UnreadCount)).unread

    @operation
    def rotate_webhook_secret(self, owner: str) -> Flow[str]:
        """Return a new secret for a person's webhook; for a day, messages are signed with the previous one, too."""
        answer = yield ApiRequest("POST", f"{_person_path(owner)}/webhook/rotate", {})
        return answer.read("a secret", reader(WebhookSecret)).webhook_secret


def _inbox_path(owner: str) -> str:
    return f"/v1/inboxes/{quote(owner, safe='')}"


def _person_path(owner: str) -> str:
    return f"/v1/people/{quote(owner, safe='')}"
