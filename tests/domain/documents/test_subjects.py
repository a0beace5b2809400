"""Who a user can be: nobody who is not one, at no door."""

from __future__ import annotations

import pytest
from tests.cases import try_each
from tests.subject_cases import ACCEPTED, REFUSED

from cloudsched import Task
from cloudsched.domain.documents.authority import is_subject
from cloudsched.errors import Forbidden, Misconfigured
from cloudsched.testing import START
from cloudsched.web.auth.authentication import ApiKey, create_key
from cloudsched.web.auth.roles import OWNER_ROLES, Caller, Right, Role


@try_each("name", REFUSED)
def test_names_that_no_user_can_have(name: str) -> None:
    """What belongs to no user, what is empty, overlong or has control characters, and what Firestore reserves."""
    assert not is_subject(name)
    for role in OWNER_ROLES:
        with pytest.raises(Forbidden):
            Caller("user:x", role, name).require(Right.READ)
        with pytest.raises(Misconfigured):
            create_key("k", role, name)
        with pytest.raises(Misconfigured):
            ApiKey.parse(f"k:{role}:{'0' * 64}:{name}")


@try_each("name", ACCEPTED)
def test_names_that_users_have(name: str) -> None:
    """As identity providers give them; each can own a task."""
    assert is_subject(name)
    Caller("user:x", Role.USER, name).require(Right.WRITE)
    task = {
        "id": "t",
        "title": "x",
        "handler": "x",
        "schedule": {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00"},
    }
    times = dict.fromkeys(("created_at", "updated_at", "status_changed_at"), START)
    assert Task.model_validate({**task, **times, "owner": name, "is_one_time": False, "timezone": "UTC"}).owner == name


@pytest.mark.parametrize("other", [None, 1, True, b"ada", ["ada"], {"sub": "ada"}, "\ud800"])
def test_only_text_is_a_name(other: object) -> None:
    """A claim can be any JSON."""
    assert not is_subject(other)
