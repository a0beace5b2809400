"""The operations on people: their contacts and preferences, and the links that end mails without a sign-in.

A link opens a page with a button. Mail programs and their scanners open links by themselves, so only the
button, a POST, changes anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from cloudsched.domain.documents.delivery_channels import USERS_CHANNELS, DeliveryChannel
from cloudsched.domain.documents.person import PersonPatch
from cloudsched.domain.documents.task import Task
from cloudsched.domain.responses.api_responses import ExportPage, WebhookSecret
from cloudsched.engine.ports.sender import Suppress
from cloudsched.errors import Forbidden, InvalidInput, NotAllowed, NotFound
from cloudsched.features.deliveries.report import report_delivery
from cloudsched.people.link_pages import render_page
from cloudsched.people.reach import say_not_set_up
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.etags import parse_if_match
from cloudsched.web.api.idempotency_keys import mark_change
from cloudsched.web.api.operation import ApiCall, operation, read_owner
from cloudsched.web.api.parse import read_body, validate_model
from cloudsched.web.api.responses import json_response, person_response, task_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.transitions.commit import RecordWrite
    from cloudsched.people.people import SavedPerson


@operation("GET", "/v1/people/{owner}", "People", success_statuses=(200, 304), response_schema="Person")
def get_person(call: ApiCall) -> Response:
    """Get a person's contacts and preferences.

    Secrets are omitted. The `ETag` identifies the state: give it as `If-Match` to a change that must not
    undo another.
    """
    return person_response(_wiring(call).people.get(read_owner(call)))


@operation(
    "PUT",
    "/v1/people/{owner}",
    "People",
    query=bodies.ReplaceQuery,
    content=bodies.NewPerson,
    is_conditional=True,
    success_statuses=(200, 201),
    response_schema="SavedPerson",
    error_statuses=(404, 409, 429),
)
def put_person(call: ApiCall, query: bodies.ReplaceQuery) -> Response:
    """Store a person, or replace all of their contacts and preferences.

    To change some of them, use PATCH. A PUT that would remove anything that is stored is refused, unless
    it has the `ETag` of what you have seen as `If-Match`, or `replace=true`.

    Mail is sent to a verified address, and messages to a verified webhook. Both stay verified until they
    change. An address is verified if the person's own ID token says so (`email_verified`), and is stored
    as it is written there. Only an admin may set `verified`. For a new webhook the response has
    `webhookSecret`, with which its messages are signed. It is shown only here.
    """
    owner = read_owner(call)
    check = parse_if_match(call.request)
    has_seen = check is not None and call.request.headers["If-Match"] != "*"
    saved = _wiring(call).people.put(
        owner,
        validate_model(bodies.NewPerson, call.read_content()),
        by=call.authority,
        proven_address=_find_proven_address(call, owner),
        check=check,
        may_remove=has_seen or query.replace == "true",
    )
    return _saved_response(saved)


@operation(
    "PATCH",
    "/v1/people/{owner}",
    "People",
    body=PersonPatch,
    is_patch=True,
    is_conditional=True,
    response_schema="SavedPerson",
    error_statuses=(409, 429),
)
def update_person(call: ApiCall, body: PersonPatch) -> Response:
    """Change some of a person's contacts and preferences.

    The fields that you name change, and all others stay, whatever changes at the same time. `null`
    removes a field. `email`, `webhook` and `devices` are replaced as a whole. Of `channels` only the
    categories that you name change. To add a device to those that you have read, give their `ETag` as
    `If-Match`. Verification and `webhookSecret` are as with PUT, which stores a person who is not known
    yet.
    """
    owner = read_owner(call)
    saved = _wiring(call).people.change(
        owner,
        body,
        by=call.authority,
        proven_address=_find_proven_address(call, owner),
        check=parse_if_match(call.request),
    )
    return _saved_response(saved)


def _wiring(call: ApiCall) -> PeopleWiring:
    return PeopleWiring.of(call.app.container)


def _find_proven_address(call: ApiCall, owner: str) -> str | None:
    """Return the address that the caller's own ID token proves to be the owner's."""
    return call.caller.verified_email if call.caller.owner == owner else None


def _saved_response(saved: SavedPerson) -> Response:
    status = 201 if saved.is_new else 200
    secret = {"webhookSecret": saved.webhook_secret} if saved.webhook_secret else {}
    return person_response(saved.person, status, secret)


@operation(
    "POST",
    "/v1/deliveries/{deliveryId}/resend",
    "People",
    body=bodies.ResendRequest,
    body_is_optional=True,
    accepts_idempotency_key=True,
    response_schema="DeliveryReport",
    error_statuses=(409,),
)
def resend_delivery(call: ApiCall, body: bodies.ResendRequest) -> Response:
    """Send a delivery that was not sent once more.

    With `address`, mails go to that address from now on: it is stored with the person, as verified. So an admin may
    give any, also for an owner who has no record, and the person the one that their ID token has as verified.
    Nothing is changed if the delivery was sent, is still being tried, was sent again less than a minute ago, or can
    reach nobody. To correct another contact, change it with PATCH, have it confirmed, then send again without an
    address. Users may send again what goes to a person, and what a user has asked for.
    """
    container = call.app.container
    stored = container.store.load(call.path["deliveryId"])
    task = None if stored is None else stored.task
    delivery = None if task is None else task.delivery
    if task is None or delivery is None or task.deleted_at is not None or not call.caller.can_see(task.owner):
        raise NotFound("delivery", call.path["deliveryId"])
    by = call.authority
    if by.is_user and not (delivery.channel in USERS_CHANNELS or delivery.is_users_url):
        raise Forbidden("Only an admin may send again what was not for a person.")
    address = body.address
    if address is not None and delivery.channel != DeliveryChannel.EMAIL:
        hint = "Change the contact with PATCH /v1/people/{owner}, have it confirmed, and send again without an address."
        raise InvalidInput("address", "goes with EMAIL alone", hint)
    patch = (
        validate_model(PersonPatch, {"email": {"address": address, "verified": True}}) if address is not None else None
    )

    def correct() -> Sequence[RecordWrite]:
        wiring = _wiring(call)
        found = wiring.recipients.find_for(task.owner, delivery)
        reason = say_not_set_up(delivery.channel) if delivery.channel not in wiring.senders else ""
        if isinstance(found, Suppress) and not (found.is_unreached and patch):
            reason = found.reason
        if reason:
            raise NotAllowed("send again", "undeliverable now", reason)
        if patch is None:
            return ()
        proven = _find_proven_address(call, task.owner)
        return wiring.people.correct(task.owner, patch, by=by, proven_address=proven)

    mark = mark_change(call, "resend", body.to_wire())
    sent = container.scheduler.manual_runs.resend(task, correct, mark, by=by)
    return json_response(report_delivery(container.store, sent).to_wire())


@operation(
    "DELETE",
    "/v1/people/{owner}",
    "People",
    query=bodies.DeletePersonQuery,
    success_statuses=(202, 204),
    response_schema="Task",
    error_statuses=(409,),
)
def delete_person(call: ApiCall, query: bodies.DeletePersonQuery) -> Response:
    """Delete a person's contacts and preferences, or everything.

    Tasks stay, and their deliveries go to the web inbox only. With `everything=true`, all data of the
    person is deleted: tasks, executions, inbox, feeds, usage, contacts. A task does this, and is returned
    with 202. Repeating the request returns the task that is under way.
    """
    owner = read_owner(call)
    if query.everything == "true":
        task = _wiring(call).person_jobs.erase(owner, by=call.authority)
        return task_response(call, task, 202)
    _wiring(call).people.delete(owner, by=call.authority)
    return Response(status=204)


@operation(
    "POST",
    "/v1/people/{owner}/export",
    "People",
    query=bodies.ExportQuery,
    success_statuses=(200, 202),
    response_schema="ExportPage",
    error_statuses=(409,),
)
def export_person(call: ApiCall, query: bodies.ExportQuery) -> Response:
    """Export all data that is stored of a person.

    It has tasks, executions, inbox, contacts, feeds and usage. A task makes it, and is returned with 202.
    Repeat the request until it is 200. Then `text` has lines of JSON, `{"kind": …, "data": …}`. As long
    as there is a `nextPageToken`, repeat the request with it, and put the texts together. An export is
    kept for an hour.
    """
    export = _wiring(call).person_jobs.export(read_owner(call), by=call.authority)
    if isinstance(export, Task):
        return task_response(call, export, 202)

    number = int(query.page_token or 0)
    page = ExportPage(text=_wiring(call).person_jobs.read_part(export, number))
    if number + 1 < export.cursor.parts:
        page = page.model_copy(update={"next_page_token": str(number + 1)})
    return json_response(page.to_wire())


@operation(
    "POST",
    "/v1/people/{owner}/webhook/verify",
    "People",
    response_schema="Person",
    error_statuses=(409, 429),
)
def verify_webhook(call: ApiCall) -> Response:
    """Ask a person's webhook whether it wants their messages.

    It gets a signed POST of the type `webhook.verification`, and has to answer with `data.challenge` and
    nothing else: as text, or as `{"challenge": "…"}`. Until then, nothing else is sent to it. The limits
    are once a minute, ten times a day for a person, and five times a day for a host.
    """
    owner = read_owner(call)
    _wiring(call).webhook_verification.verify(owner, by=call.authority)
    return person_response(_wiring(call).people.get(owner))


@operation(
    "POST",
    "/v1/people/{owner}/webhook/rotate",
    "People",
    response_schema="WebhookSecret",
    error_statuses=(409,),
)
def rotate_webhook_secret(call: ApiCall) -> Response:
    """Make a new secret for a person's webhook.

    It is shown only here. For a day, messages are signed with the previous one as well.
    """
    secret = _wiring(call).people.rotate_webhook_secret(read_owner(call), by=call.authority)
    return json_response(WebhookSecret(webhook_secret=secret).to_wire())


_TOKEN = re.compile(r"[A-Za-z0-9_.-]{1,2000}")
_INVALID_LINK = "This link is no longer valid, or was not copied whole."


@operation(
    "GET",
    "/v1/links/unsubscribe/{linkToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
)
def show_unsubscribe_link(call: ApiCall) -> Response:
    """Show a page to end mails.

    It changes nothing.
    """
    if not _TOKEN.fullmatch(call.path["linkToken"]):
        return render_page("Not unsubscribed", _INVALID_LINK, status=404)
    return render_page("Unsubscribe", "Do you want to end mails of this kind?", form="<button>Unsubscribe</button>")


@operation(
    "POST",
    "/v1/links/unsubscribe/{linkToken}",
    "Links",
    right=None,
    is_link=True,
    response_schema="text/html",
)
def follow_unsubscribe_link(call: ApiCall) -> Response:
    """End mails of one category.

    This is the one click in a mail program (RFC 8058), or the button of the page. It is safe to repeat.
    """
    read_body(call.request)
    try:
        category = _wiring(call).unsubscribe_links.follow(call.path["linkToken"])
    except NotFound:
        return render_page("Not unsubscribed", _INVALID_LINK, status=404)
    if category is None:
        return render_page("No mails", "Your contacts are no longer stored here, so you get no mails.")
    return render_page("Unsubscribed", f"You get no more mails of the kind {category.lower()}.")
