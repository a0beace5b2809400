"""The page on which a person who is asked by name approves or rejects, without signing in.

Mail programs and their scanners open links by themselves. So a GET changes nothing, and a POST answers only
if it says which button was pressed.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from cloudsched.domain.recurrence import time_zones
from cloudsched.errors import InvalidInput, NotAllowed, NotFound
from cloudsched.people.answers import MAX_NOTE
from cloudsched.people.link_pages import render_page
from cloudsched.people.senders.mail import clean_line
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.parse import read_body

if TYPE_CHECKING:
    from datetime import datetime

    from werkzeug.wrappers import Response

    from cloudsched.people.answers import Answer, AskedQuestion

_GONE: Final = 410
_DECISIONS: Final = {"approve": True, "reject": False}


@operation(
    "GET",
    "/v1/links/answer/{answerToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
    error_statuses=(410,),
)
def show_question_link(call: ApiCall) -> Response:
    """Show the page that asks a person for a yes or no.

    It changes nothing. Once the question is answered, it shows the first answer.
    """
    answers = PeopleWiring.of(call.app.container).answers
    try:
        return _show(answers.look(answers.read(call.path["answerToken"])))
    except NotFound:
        return _refuse_link()


@operation(
    "POST",
    "/v1/links/answer/{answerToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
    error_statuses=(409, 410),
)
def follow_question_link(call: ApiCall) -> Response:
    """Approve or reject, as a form with `decision` (`approve` or `reject`), and perhaps a `note`.

    The execution gets `{"approved": true}` or `{"approved": false}` as the event that it waits for, with
    `note` if there is one. The first answer counts. A repetition changes nothing, and shows that one.
    """
    answers = PeopleWiring.of(call.app.container).answers
    body = read_body(call.request).decode("utf-8", "replace")
    note = ""
    try:
        message = answers.read(call.path["answerToken"])
        decision, note = _read_form(body)
        if decision not in _DECISIONS:
            return _show(answers.look(message), "Press one of the buttons to answer.", status=400)
        return _show(answers.send(message, approved=_DECISIONS[decision], note=note, via="link"))
    except NotFound:
        return _refuse_link()
    except (InvalidInput, NotAllowed) as error:
        status = 400 if isinstance(error, InvalidInput) else 409
        return _show(answers.look(message), f"Nothing was sent: {error}", note=note, status=status)


def _read_form(body: str) -> tuple[str, str]:
    """Return the decision and the note of a form, either empty if it has none. Raises InvalidInput if it has two."""
    try:
        form = parse_qs(body, max_num_fields=10)
    except ValueError as error:
        raise InvalidInput("(body)", f"is no form: {error}", "Press one of the buttons to answer.") from None
    for name in ("decision", "note"):
        if len(form.get(name, ())) > 1:
            raise InvalidInput(name, "is given twice", "Press one of the buttons to answer.")
    return form.get("decision", [""])[0], _clean(form.get("note", [""])[0])


def _refuse_link() -> Response:
    return render_page("Nothing to answer", "This link is no longer valid, or was not copied whole.", status=404)


def _show(question: AskedQuestion, told: str = "", *, note: str = "", status: int = 200) -> Response:
    message = question.message
    title = clean_line(message.title)
    whole = "" if message.body in {"", message.title} else _clean(message.body)
    if question.answer is not None:
        return render_page(title, whole, *say_answer(question, question.answer))
    if question.problem:
        return render_page(title, whole, question.problem, status=_GONE)

    until = "" if message.until is None else f"You can answer until {_say_time(question, message.until)}."
    name = "" if question.person is None else question.person.name
    asked = f"This is asked of {clean_line(name or message.owner)}."
    return render_page(title, whole, asked, until, told, form=_write_form(question, note), status=status)


def _write_form(question: AskedQuestion, note: str) -> str:
    field = ""
    if question.takes_note:
        field = (
            '<label for="note">A note, if you like</label>'
            f'<textarea id="note" name="note" rows="3" maxlength="{MAX_NOTE}" dir="auto">{escape(note)}</textarea>'
        )
    buttons = (
        '<button name="decision" value="approve">Approve</button><button name="decision" value="reject">Reject</button>'
    )
    return field + buttons


def say_answer(question: AskedQuestion, answer: Answer) -> list[str]:
    """Return the answer that counts, in a sentence, and its note or an empty text."""
    verb = {True: "Approved", False: "Rejected", None: "Answered"}[answer.approved]
    said = f"{verb} by {clean_line(answer.by)}, {_say_time(question, answer.at)}."
    return [said, f"Note: {_clean(answer.note)}" if answer.note else ""]


def _say_time(question: AskedQuestion, at: datetime) -> str:
    name = "UTC" if question.person is None else question.person.timezone
    return f"{at.astimezone(time_zones.load_shown(name)):%Y-%m-%d %H:%M} ({name})"


def _clean(text: str) -> str:
    """Return text of several lines without characters that change what is seen of the others."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(map(clean_line, lines)).strip()
