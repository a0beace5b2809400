"""The operations of the API on people, and on their calendars and scripts, as flows that both clients run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, Sleep, fetch, given, operation, parse_task
from cloudsched.client.views import CalendarView, FeedView, PersonView, ScriptView, TaskView, reader
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.person import PersonPatch, PersonSpec
from cloudsched.domain.responses.api_responses import ExportPage, WebhookSecret
from cloudsched.domain.responses.count import Count
from cloudsched.domain.transitions.task_draft import to_wire_fields
from cloudsched.domain.transitions.validation_errors import say_in_python
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from cloudsched.domain.transitions.task_arguments import PersonFields


class RecordOperations:
    """The methods of `Client` and `AsyncClient` for calendars that schedules respect, feeds and stored scripts."""

    @operation
    def put_calendar(  # noqa: PLR0913 - each is an option of its own
        self,
        calendar_id: str,
        *,
        owner: str | None = None,
        title: str = "",
        weekdays: Iterable[str] | None = None,
        days: Iterable[dict[str, Any] | date | str] | None = None,
        ics: str | None = None,
        url: str | None = None,
        holidays: dict[str, Any] | None = None,
    ) -> Flow[CalendarView]:
        """Create or replace a calendar. See docs/guides/calendars.md. To remove its days, give ``days=[]``.

        Args:
            calendar_id: Its name.
            owner: Its owner. If None, a server's calendar is for everybody, and a user's belongs to the user.
            title: A title for people.
            weekdays: Days of the week that are always on it, such as SA and SU.
            days: Its days: each a `date`, a text such as ``2027-07-14``, or a dict with `date`, `until` and `name`.
            ics: An iCalendar file, in place of days.
            url: The address of an iCalendar file, fetched every day.
            holidays: A country, such as ``{"country": "DE", "subdivision": "BY"}``.

        >>> calendar = client.put_calendar("days-off", weekdays=["SA", "SU"], days=[date(2027, 7, 14)])
        """
        body: dict[str, Any] = {"title": title, **given(owner=owner, ics=ics, url=url, holidays=holidays)}
        if weekdays is not None:
            body["weekdays"] = list(weekdays)
        if days is not None:
            written = to_json_value("days", list(days))
            body["days"] = [each if isinstance(each, dict) else {"date": each} for each in written]
        return fetch("a calendar", CalendarView, "PUT", _calendar_path(calendar_id), body)

    @operation
    def calendar(self, calendar_id: str, owner: str | None = None) -> Flow[CalendarView]:
        """Return a calendar: the one for everybody, or else the owner's own."""
        return fetch("a calendar", CalendarView, "GET", _calendar_path(calendar_id), query={"owner": owner})

    @operation
    def calendars(self, owner: str | None = None) -> Flow[list[CalendarView]]:
        """Return the calendars for everybody and the owner's own, without their days."""
        answer = yield ApiRequest("GET", "/v1/calendars", query={"owner": owner})
        return answer.read_list("calendars", reader(CalendarView))

    @operation
    def delete_calendar(self, calendar_id: str, owner: str | None = None) -> Flow[None]:
        """Delete a calendar. Tasks that name it keep the days that it had."""
        yield ApiRequest("DELETE", _calendar_path(calendar_id), query={"owner": owner})

    @operation
    def put_script(
        self,
        name: str,
        source: str,
        *,
        owner: str | None = None,
        description: str = "",
        tools: Iterable[str] | None = None,
    ) -> Flow[ScriptView]:
        """Create or replace a script. See docs/guides/scripts.md.

        Args:
            name: Its name, for ``script={"name": …}`` in a task and ``scripts.name(…)`` in a script.
            source: The body of an async function, in JavaScript.
            owner: Its owner, whose tasks alone can run it. The caller if None, or ``system``.
            description: A description for people.
            tools: The handlers that it may call. None for all tools.
        """
        body: dict[str, Any] = {"source": source, "description": description, **given(owner=owner)}
        if tools is not None:
            body["tools"] = list(tools)
        return fetch("a script", ScriptView, "PUT", _script_path(name), body)

    @operation
    def script(self, name: str, owner: str | None = None) -> Flow[ScriptView]:
        """Return a script, with its source."""
        return fetch("a script", ScriptView, "GET", _script_path(name), query={"owner": owner})

    @operation
    def scripts(self, owner: str | None = None) -> Flow[list[ScriptView]]:
        """Return an owner's scripts, without their sources."""
        answer = yield ApiRequest("GET", "/v1/scripts", query={"owner": owner})
        return answer.read_list("scripts", reader(ScriptView))

    @operation
    def delete_script(self, name: str, owner: str | None = None) -> Flow[None]:
        """Delete a script. Runs that have begun go on."""
        yield ApiRequest("DELETE", _script_path(name), query={"owner": owner})

    @operation
    def create_feed(
        self, owner: str | None = None, categories: Iterable[str] = (), labels: Iterable[str] = ()
    ) -> Flow[FeedView]:
        """Create a feed of an owner's tasks. Its `url` has a secret that is shown only here (docs/guides/calendars.md).

        Args:
            owner: The owner of the tasks that it shows. The caller if None.
            categories: Only tasks of these categories. All if there are none.
            labels: Only tasks that have all of these labels, each ``key=value``.
        """
        content: dict[str, Any] = {
            "categories": list(categories),
            "labels": list(labels),
            **given(owner=owner),
        }
        return (yield ApiRequest("POST", "/v1/feeds", content)).read("a feed", reader(FeedView))

    @operation
    def feeds(self, owner: str | None = None) -> Flow[list[FeedView]]:
        """Return the feeds of an owner, or of the caller if None, without their addresses."""
        answer = yield ApiRequest("GET", "/v1/feeds", query={"owner": owner})
        return answer.read_list("feeds", reader(FeedView))

    @operation
    def delete_feed(self, feed_id: str) -> Flow[None]:
        """Revoke a feed. Its address stops working."""
        yield ApiRequest("DELETE", f"/v1/feeds/{quote(feed_id, safe='')}")


def _calendar_path(calendar_id: str) -> str:
    return f"/v1/calendars/{quote(calendar_id, safe='')}"


def _script_path(name: str) -> str:
    return f"/v1/scripts/{quote(name, safe='')}"


_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 10.0
_EXPORT_TIMEOUT: Final = 3600.0
"""The longest wait for an export, in seconds."""


class PersonOperations:
    """The methods of `Client` and `AsyncClient` for a person, whom apps keep themselves."""

    @operation
    def person(self, owner: str) -> Flow[PersonView]:
        """Return a person's contacts and preferences. Raises NotFound.

        >>> client.person("ada").email.address
        'ada@example.com'
        """
        return _fetch_person(ApiRequest("GET", _person_path(owner)))

    @operation
    def put_person(
        self, /, owner: str, *, replace: bool = False, etag: str | None = None, **fields: Unpack[PersonFields]
    ) -> Flow[PersonView]:
        """Store a person, or replace all of their contacts and preferences (docs/guides/delivery.md).

        To change some of them, use `update_person`.

        Args:
            owner: The person.
            replace: Also remove what the fields leave out. Without it, or an `etag`, such a call is refused.
            etag: The `etag` of the person as you have seen them. If they have changed since, nothing happens.
            fields: `name`, `email`, `devices`, `webhook`, `timezone`, `locale`, `channels`, as the API takes them:
                ``email={"address": "ada@example.com"}``.

        Raises:
            InvalidInput: A field is not valid, or would be removed.
            PreconditionFailed: The person has changed since this `etag`. Nothing was changed.

        >>> person = client.put_person("ada", name="Ada", timezone="Europe/Paris", replace=True)
        """
        query = {"replace": "true"} if replace else None
        return _send_person("PUT", owner, fields, PersonSpec, etag, query)

    @operation
    def update_person(
        self, /, owner: str, *, etag: str | None = None, **changes: Unpack[PersonFields]
    ) -> Flow[PersonView]:
        """Change some of a person's contacts and preferences, by their Python names. All others stay.

        None removes a field. `email`, `webhook` and `devices` are replaced as a whole. Of `channels` only
        the categories that you name change, and None removes one. To add a device, give the `etag` of the
        person with those that you have read.

        Raises:
            NotFound: Nothing is stored of the person: use `put_person`.
            InvalidInput: A field is not valid.
            PreconditionFailed: The person has changed since this `etag`. Nothing was changed.

        >>> client.update_person("ada", timezone="Europe/Paris", locale="de").locale
        'de'
        """
        return _send_person("PATCH", owner, changes, PersonPatch, etag)


class PeopleOperations:
    """The methods of `Client` and `AsyncClient` for people's contacts and preferences."""

    @operation
    def delete_person(self, owner: str) -> Flow[None]:
        """Delete a person's contacts and preferences. The person's tasks stay."""
        yield ApiRequest("DELETE", _person_path(owner))

    @operation
    def erase_person(self, owner: str) -> Flow[TaskView]:
        """Start to delete all data of a person: tasks, executions, inbox, feeds, contacts.

        Returns the task that does it. It is safe to repeat.
        """
        return parse_task((yield ApiRequest("DELETE", _person_path(owner), query={"everything": "true"})))

    @operation
    def export_person(self, owner: str) -> Flow[str]:
        """Return all data that is stored of a person, as lines of JSON, once it has been put together.

        Raises:
            TimeoutError: It was not ready within an hour.
        """
        texts: list[str] = []
        query: dict[str, str] = {}
        pause = _FIRST_PAUSE
        path = f"{_person_path(owner)}/export"
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
                yield Sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    @operation
    def verify_webhook(self, owner: str) -> Flow[PersonView]:
        """Ask a person's webhook whether it wants their messages. Raises InvalidInput if it does not confirm this."""
        return _fetch_person(ApiRequest("POST", f"{_person_path(owner)}/webhook/verify", {}))

    @operation
    def verify_chat(self, owner: str, chat: Literal["telegram", "slack"]) -> Flow[PersonView]:
        """Send a person's chat a link that confirms that they want messages there. Raises InvalidInput."""
        return _fetch_person(ApiRequest("POST", f"{_person_path(owner)}/chats/{quote(chat, safe='')}/verify", {}))

    @operation
    def mark_read(self, owner: str, message_id: str) -> Flow[Message]:
        """Mark a message in an owner's inbox as read, and return it.

        >>> message = next(client.inbox("ada"))
        >>> client.mark_read("ada", message.id).read_at is None
        False
        """
        path = f"{_inbox_path(owner)}/messages/{quote(message_id, safe='')}/read"
        return fetch("a message", Message, "POST", path, {})

    @operation
    def unread(self, owner: str) -> Flow[Count]:
        """Return the number of unread messages in an owner's inbox, at most 1000.

        >>> client.unread("ada").value
        2
        """
        answer = yield ApiRequest("GET", f"{_inbox_path(owner)}/unread")
        return answer.read("a count", reader(Count))

    @operation
    def rotate_webhook_secret(self, owner: str) -> Flow[str]:
        """Return a new secret for a person's webhook. For a day, messages are signed with the previous one, too."""
        answer = yield ApiRequest("POST", f"{_person_path(owner)}/webhook/rotate", {})
        return answer.read("a secret", reader(WebhookSecret)).webhook_secret


def _inbox_path(owner: str) -> str:
    return f"/v1/inboxes/{quote(owner, safe='')}"


def _person_path(owner: str) -> str:
    return f"/v1/people/{quote(owner, safe='')}"


def _fetch_person(request: ApiRequest) -> Flow[PersonView]:
    answer = yield request
    return answer.read("a person", lambda content: reader(PersonView)({**content, "etag": answer.etag}))


def _send_person(
    method: str,
    owner: str,
    fields: Mapping[str, Any],
    kind: type[PersonSpec | PersonPatch],
    etag: str | None,
    query: dict[str, Any] | None = None,
) -> Flow[PersonView]:
    """Send a person's fields, and return the person. An error names an invalid field by its Python name."""
    headers = {} if etag is None else {"If-Match": etag}
    try:
        content = to_wire_fields(fields)
        request = ApiRequest(method, _person_path(owner), content, query, headers, is_idempotent=True)
        return (yield from _fetch_person(request))
    except InvalidInput as error:
        say_in_python(error, fields, kind)
        raise
