"""The operations of chats: what their services post, and the proof that a chat is a person's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput, NotAllowed, NotFound
from cloudsched.people.answer_operations import say_answer
from cloudsched.people.link_pages import render_page
from cloudsched.people.reach import find_reach
from cloudsched.people.senders.chat_app import Tap
from cloudsched.people.senders.mail import clean_line
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.api.operation import ApiCall, operation, read_owner
from cloudsched.web.api.parse import read_body
from cloudsched.web.api.responses import json_response, person_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.people.senders.chat_app import ChatApp

log: Final = own_logger(__name__)
_CHATS: Final = {str(each).lower(): each for each in (DeliveryChannel.TELEGRAM, DeliveryChannel.SLACK)}


@operation(
    "POST",
    "/v1/links/telegram",
    "Links",
    right=None,
    is_link=True,
    response_schema="JsonObject",
    error_statuses=(401, 404),
)
def take_telegram_update(call: ApiCall) -> Response:
    """Take what Telegram posts: a tap on a button below a question.

    Telegram proves itself with the secret that `setWebhook` was given. The tap counts if the account is that
    of the person who is asked. Whoever writes to the bot is told the number of their chat.
    """
    return _take(call, DeliveryChannel.TELEGRAM)


@operation(
    "POST",
    "/v1/links/slack",
    "Links",
    right=None,
    is_link=True,
    response_schema="JsonObject",
    error_statuses=(401, 404),
)
def take_slack_action(call: ApiCall) -> Response:
    """Take what Slack posts: a tap on a button below a question.

    Slack signs what it posts. The tap counts if the member is the person who is asked.
    """
    return _take(call, DeliveryChannel.SLACK)


def _take(call: ApiCall, channel: DeliveryChannel) -> Response:
    body = read_body(call.request)
    app = PeopleWiring.of(call.app.container).chat_apps.get(channel)
    if app is None:
        raise NotFound("chat", channel.lower())
    found = app.read(call.request.headers, body, call.app.container.clock.now())
    if not isinstance(found, Tap):
        return json_response(found)
    return json_response(app.answer(found, _answer(call, channel, app, found)))


def _answer(call: ApiCall, channel: DeliveryChannel, app: ChatApp, tap: Tap) -> str:
    """Answer a question by a tap, show that in its place, and return what the person reads."""
    wiring = PeopleWiring.of(call.app.container)
    stored = call.app.container.store.load(tap.delivery_id)
    delivery = None if stored is None else stored.task.delivery
    if stored is None or delivery is None or delivery.asks is None or delivery.asked_at is None:
        return "Nobody waits for your answer any more."
    person = wiring.people.find(stored.task.owner)
    if delivery.channel != channel or person is None or tap.user not in find_reach(person, channel).addresses:
        return "This was not asked of you."
    try:
        message = wiring.answers.find_message(stored.task.owner, delivery.asks, delivery.asked_at)
        question = wiring.answers.send(message, approved=tap.approved, via=channel.lower())
    except NotFound:
        return "Nobody waits for your answer any more."
    except (InvalidInput, NotAllowed) as error:
        return f"Nothing was sent: {error}"

    said = question.problem
    if question.answer is not None:
        said = say_answer(question, question.answer)[0]
    try:
        app.show(tap, f"{clean_line(message.title)}\n\n{said}")
    except (DeliveryDelayed, DeliveryRefused) as error:  # the answer counts; a second tap shows it
        log.warning("not shown: %s", error, extra={"action": "answer_not_shown", "taskId": message.task_id})
    return said


@operation(
    "POST", "/v1/people/{owner}/chats/{chat}/verify", "People", response_schema="Person", error_statuses=(409, 429)
)
def verify_chat(call: ApiCall) -> Response:
    """Send a person's chat, `telegram` or `slack`, a link that confirms that they want messages there.

    Until somebody who reads that chat has pressed the button on its page, nothing else is sent there. The
    limits are once a minute and five times a day, for a person and for an account.
    """
    owner = read_owner(call)
    wiring = PeopleWiring.of(call.app.container)
    wiring.contact_links.send(call.public_root or "", owner, _read_chat(call), by=call.authority)
    return person_response(wiring.people.get(owner))


def _read_chat(call: ApiCall) -> DeliveryChannel:
    try:
        return _CHATS[call.path["chat"]]
    except KeyError:
        raise NotFound("chat", call.path["chat"]) from None


@operation("GET", "/v1/links/contact/{linkToken}", "Links", right=None, is_link=True, response_schema="text/html")
def show_contact_link(call: ApiCall) -> Response:
    """Show the page that asks whether a chat wants a person's messages.

    It changes nothing.
    """
    try:
        owner, channel, _ = PeopleWiring.of(call.app.container).contact_links.read(call.path["linkToken"])
    except NotFound:
        return _refuse_link()
    text = f"Somebody who signs in as {clean_line(owner)} wants the messages of their tasks by {channel.title()}."
    note = "Confirm it only if that is you. You then also answer there what they are asked."
    return render_page("Are these messages yours?", text, note, form="<button>Yes, send them here</button>")


@operation(
    "POST",
    "/v1/links/contact/{linkToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
    error_statuses=(410,),
)
def follow_contact_link(call: ApiCall) -> Response:
    """Confirm that a chat wants a person's messages.

    It is safe to repeat.
    """
    read_body(call.request)
    try:
        is_confirmed = PeopleWiring.of(call.app.container).contact_links.follow(call.path["linkToken"])
    except NotFound:
        return _refuse_link()
    if not is_confirmed:
        return render_page("Not confirmed", "Another account is stored by now. Ask for a new link.", status=410)
    return render_page("Confirmed", "You get the messages of your tasks in this chat now.")


def _refuse_link() -> Response:
    return render_page("Nothing to confirm", "This link is no longer valid, or was not copied whole.", status=404)
