"""People: how owners want to be reached. Every write goes through here, so `verified` can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import ValidationError

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.person import (
    EmailContact,
    Person,
    PersonPatch,
    PersonSpec,
    SlackContact,
    TelegramContact,
    WebhookContact,
    list_removed,
)
from cloudsched.domain.documents.task import FieldChange, HistoryEntry
from cloudsched.domain.documents.task_link import TaskLink, zone_key
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions.task_draft import to_wire_fields
from cloudsched.domain.transitions.validation_errors import WIRE, join_faults, say_in_python, to_invalid_input
from cloudsched.engine.state.record_changes import change_person, change_record, delete_record, find_record, note_act
from cloudsched.engine.tasks.follow_changes import count_replan
from cloudsched.errors import Forbidden, InvalidInput, NotFound, PreconditionFailed
from cloudsched.people.documents import ContactSecrets
from cloudsched.people.reach import with_verified
from cloudsched.people.webhook_secrets import WebhookSecrets

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import RecordWrite
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.store import Store


class SavedPerson(NamedTuple):
    """A person as stored now. The secret of a new webhook is shown only here."""

    person: Person
    is_new: bool = False
    webhook_secret: str | None = None


S = TypeVar("S", PersonSpec, PersonPatch)
C = TypeVar("C", WebhookContact, TelegramContact, SlackContact)
Check = Callable[["Person | None"], None]
"""Checks the state that a change replaces, None if there is none. If it raises, nothing changes."""


def parse_person(content: dict[str, Any], kind: type[S]) -> S:
    """Return what a person has set or changed, from JSON. Raises InvalidInput."""
    try:
        return kind.model_validate(content, context=WIRE)
    except ValidationError as error:
        raise to_invalid_input(error, model=kind) from None


def expect_etag(etag: str) -> Check:
    """Return a check that a person is in the state with this etag. It raises PreconditionFailed."""

    def check(current: Person | None) -> None:
        if current is None or current.etag != etag.strip('"'):
            raise PreconditionFailed("The person")

    return check


class People:
    """Reads and writes people."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        require_url: Callable[[str], None],
        follow: Callable[[str, int], None],
    ) -> None:
        self._records = store.records
        self._clock = clock
        self._require_url = require_url
        self._follow = follow
        self.webhook_secrets: WebhookSecrets = WebhookSecrets(self._records, clock)

    def find(self, owner: str) -> Person | None:
        """Return an owner's contacts and preferences, or None. One document is read."""
        return find_record(self._records, Person, owner)

    def get(self, owner: str) -> Person:
        """Return an owner's contacts and preferences. Raises NotFound."""
        person = self.find(owner)
        if person is None:
            raise NotFound("person", owner)
        return person

    def put_fields(
        self,
        owner: str,
        fields: dict[str, Any],
        *,
        by: Authority,
        etag: str | None,
        may_remove: bool,
    ) -> Person:
        """Store a person from fields by their Python names. See `App.put_person`."""
        save = partial(self.put, owner, by=by, may_remove=may_remove)
        return _save_fields(save, fields, PersonSpec, etag)

    def change_fields(self, owner: str, fields: dict[str, Any], *, by: Authority, etag: str | None) -> Person:
        """Change a person by fields with Python names. See `App.update_person`."""
        return _save_fields(partial(self.change, owner, by=by), fields, PersonPatch, etag)

    def put(
        self,
        owner: str,
        spec: PersonSpec,
        *,
        by: Authority,
        proven_address: str | None = None,
        check: Check | None = None,
        may_remove: bool = False,
    ) -> SavedPerson:
        """Write what a person has set, in place of what there was.

        It is refused if this would remove anything, unless it `may_remove`. `proven_address` is the one
        in the owner's own ID token. Raises InvalidInput, Forbidden or QuotaExceeded.
        """
        self._require_allowed(owner, spec.webhook, by)

        def replace(current: Person | None) -> PersonSpec:
            if current is None or may_remove:
                return spec
            removed = list_removed(current, spec)
            if removed:
                raise _refuse_removal(owner, spec, removed)
            return spec

        return self._write(owner, replace, by, proven_address, check)

    def change(
        self,
        owner: str,
        patch: PersonPatch,
        *,
        by: Authority,
        proven_address: str | None = None,
        check: Check | None = None,
    ) -> SavedPerson:
        """Change some of what a person has set. Changes of others at the same time are kept.

        Raises NotFound if nothing is stored of them, or what `put` raises.
        """
        self._require_allowed(owner, patch.webhook, by)

        def merge(current: Person | None) -> PersonSpec:
            if current is None:
                raise NotFound("person", owner, "Store them first, with PUT or put_person.")
            return patch.apply_to(current)

        if "email" not in patch.model_fields_set:
            proven_address = None  # the token says nothing of an address that stays
        return self._write(owner, merge, by, proven_address, check)

    def correct(
        self, owner: str, patch: PersonPatch, *, by: Authority, proven_address: str | None
    ) -> Sequence[RecordWrite]:
        """Return what `change` would write, with the note of it, for a commit that writes it. Raises as that does.

        If nothing is stored of them, it is what `put` would write.
        """
        people = copy(self)
        writes: list[RecordWrite] = []
        reads = {name: getattr(self._records, name) for name in ("load", "list", "list_all")}
        people._records = cast("RecordStore", SimpleNamespace(**reads, write=lambda *each: writes.append(each)))  # noqa: SLF001 - its own
        if find_record(self._records, Person, owner) is None:
            people.put(owner, patch.apply_to(PersonSpec()), by=by, proven_address=proven_address)
        else:
            people.change(owner, patch, by=by, proven_address=proven_address)
        return writes

    def _require_allowed(self, owner: str, webhook: WebhookContact | None, by: Authority) -> None:
        by.require_owner(owner)
        if webhook is not None:
            self._require_url(webhook.url)

    def _write(
        self,
        owner: str,
        decide: Callable[[Person | None], PersonSpec],
        by: Authority,
        proven_address: str | None,
        check: Check | None,
    ) -> SavedPerson:
        """Write what `decide` makes of the present state.

        An address and a webhook stay verified as long as they are the same. Users may not say that either
        is verified. A change that changes nothing is not written or checked: it may be a repetition.
        """
        may_verify = not by.is_user
        saved: SavedPerson | None = None
        before: Person | None = None

        def write(current: Person | None) -> Person:
            nonlocal saved, before
            before = current
            spec = decide(current)
            fields = {name: getattr(spec, name) for name in PersonSpec.model_fields}
            fields["email"] = _decide_email(
                spec.email,
                current,
                may_verify=may_verify,
                proven_address=proven_address,
            )
            for name in ("webhook", "telegram", "slack"):
                fields[name] = _decide_contact(name, fields[name], getattr(current, name, None), may_verify=may_verify)

            now = self._clock.now()
            known = current or Person(id=owner, owner=owner, created_at=now, updated_at=now)
            person = known.model_copy(update=fields)
            if current is not None and person == current:
                saved = SavedPerson(current)
                return current
            if check is not None:
                check(current)

            person = self._with_zone_revision(person.model_copy(update={"updated_at": now}), current, by)
            saved = SavedPerson(person, current is None, self._make_secret(person, current))
            return person

        after = change_record(self._records, Person, owner, write)
        assert saved is not None  # noqa: S101 - it was written
        if fields := tuple(_list_verified(before, after)):
            entry = HistoryEntry(at=self._clock.now(), action=Action.CONTACT_VERIFIED, by=by.actor, fields=fields)
            note_act(self._records, entry, owner=owner)
        return saved

    def _with_zone_revision(self, person: Person, current: Person | None, by: Authority) -> Person:
        """Return a person with the revision of their zone. If it changes, first create the task that follows it.

        Tasks may also follow somebody who was deleted and is written again.
        """
        if current is None:
            revision = 0
            is_followed = bool(self._records.list(TaskLink, zone_key(person.id), limit=1))
        else:
            is_followed = current.timezone != person.timezone
            revision = current.zone_revision + is_followed

        if is_followed:
            if by.is_user:
                count_replan(self._records, self._clock, person.id)
            self._follow(person.id, revision)
        return person.model_copy(update={"zone_revision": revision})

    def verify_webhook(self, owner: str, url: str) -> bool:
        """Record that a webhook wants messages. Return False if another one is stored by now."""

        def verify(known: Person) -> Person:
            return with_verified(known, DeliveryChannel.WEBHOOK, url)

        changed = change_person(self._records, self._clock, owner, verify)
        return changed is not None and changed.verified_webhook == url

    def rotate_webhook_secret(self, owner: str, *, by: Authority) -> str:
        """Make a new secret for a webhook. The previous one signs for a day. Raises NotFound or InvalidInput."""
        by.require_owner(owner)
        webhook = self.get(owner).webhook
        if webhook is None:
            raise InvalidInput("webhook", "is not set", "Set it first.")
        return self.webhook_secrets.replace(owner, webhook.url, keeps_previous=True)

    def delete(self, owner: str, *, by: Authority) -> None:
        """Delete what is stored of a person's contacts and preferences. Raises NotFound."""
        by.require_owner(owner)
        self.get(owner)
        self.forget(owner)

    def forget(self, owner: str) -> None:
        """Delete a person's contacts and preferences, if there are any. Safe to repeat."""
        delete_record(self._records, ContactSecrets, owner)
        # The person goes last: as long as they are stored, the deletion can be repeated.
        delete_record(self._records, Person, owner)

    def _make_secret(self, person: Person, current: Person | None) -> str | None:
        """Return a secret for a new webhook. It is stored first, so that no webhook is without one."""
        if person.webhook is None:
            return None
        if current is not None and current.webhook is not None and current.webhook.url == person.webhook.url:
            return None
        return self.webhook_secrets.replace(person.owner, person.webhook.url)


def _refuse_removal(owner: str, spec: PersonSpec, removed: Sequence[str]) -> InvalidInput:
    """Return the error for a replacement that would remove fields. It says how to change only the others."""
    given = ", ".join(f"{name}=…" for name in PersonSpec.model_fields if name in spec.model_fields_set) or "…"
    way = f"PATCH changes only what you name: update_person({owner!r}, {given})"
    hint = f"{way}. To remove it, add ?replace=true or If-Match; in Python replace=True or etag=…."
    first, *others = removed
    problem = "is stored, and would be removed"
    return join_faults([InvalidInput(first, problem, hint), *(InvalidInput(name, problem) for name in others)])


def _decide_email(
    given: EmailContact | None,
    current: Person | None,
    *,
    may_verify: bool,
    proven_address: str | None,
) -> EmailContact | None:
    """Return the address to store, and whether it is verified. The owner's word is not enough for that.

    An address that the owner's token proves is stored as the token spells it. At some servers, addresses
    that differ only in case belong to two people, and letters of other alphabets may share a small letter.
    """
    if given is None:
        return None
    if may_verify and given.verified is not None:
        return given
    if proven_address is not None and proven_address.casefold() == given.address.casefold():
        return EmailContact(address=proven_address, verified=True)
    verified = current is not None and current.verified_address == given.address
    if given.verified and not verified:
        hint = "leave it out: it is what your ID token says of that very address"
        raise Forbidden(f"Only an admin may say that an address is verified; {hint}.")
    return EmailContact(address=given.address, verified=verified)


def _decide_contact(name: str, given: C | None, known: C | None, *, may_verify: bool) -> C | None:
    """Return a webhook or an account to store, and whether it is verified, which its owner cannot say."""
    if given is None:
        return None
    is_same = known is not None and known.model_copy(update={"verified": given.verified}) == given
    verified = is_same and known is not None and known.verified is True
    if may_verify and given.verified is not None:
        verified = given.verified
    if given.verified and not verified:
        path = "webhook" if name == "webhook" else f"chats/{name}"
        hint = f"leave it out, and have it asked (POST …/{path}/verify)"
        raise Forbidden(f"Only an admin may say that it is verified ({name}); {hint}.")
    return given.model_copy(update={"verified": verified})


def _save_fields(
    save: Callable[..., SavedPerson],
    fields: dict[str, Any],
    kind: type[S],
    etag: str | None,
) -> Person:
    check = expect_etag(etag) if etag is not None else None
    try:
        saved = save(parse_person(to_wire_fields(fields), kind), check=check)
    except InvalidInput as error:
        say_in_python(error, fields, kind)
        raise
    return saved.person.answering(saved.webhook_secret)


def _list_verified(before: Person | None, after: Person) -> Iterator[FieldChange]:
    """Yield the contacts that are verified since. Of these, only e-mail addresses are told: others have secrets."""
    for name in ("email", "webhook", "telegram", "slack"):
        known, changed = (getattr(each, name, None) for each in (before, after))
        if changed is not None and changed.verified and changed != known:
            was = getattr(known, "address", "stored")
            old = None if known is None else was if known.verified else f"{was} (not verified)"
            yield FieldChange(field=name, before=old, after=getattr(changed, "address", "verified"))
