"""An address is verified by the ID token of the person who sets it, or by a server's word; mail goes to no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cases import try_each
from tests.greeting_app import app
from tests.web.auth.token_issuer import AUDIENCE, PROJECT, Issuer, publish_keys
from tests.web.callers import DAY, Answer, clear_authenticators, open_api

from cloudsched.config.access import Access
from cloudsched.testing import Simulation
from cloudsched.web.auth.roles import ON_BEHALF_OF

ADA, EVE = "ada@example.com", "eve@example.com"
ROBOT, HUMAN = "robot@demo.iam.gserviceaccount.com", "human@example.com"
ACCESS = Access(firebase_project=PROJECT, service_accounts=(f"{ROBOT}=admin", f"{HUMAN}=user"), audiences=(AUDIENCE,))
VERIFIED: dict[str, Any] = {"email": ADA, "email_verified": True}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """The key that is taken for Google's."""
    clear_authenticators()
    issuer = Issuer()
    with publish_keys(issuer):
        yield issuer
    clear_authenticators()


class Api:
    """An API whose callers sign in by Google's tokens."""

    def __init__(self, sim: Simulation, issuer: Issuer) -> None:
        self._sim = sim
        self._issuer = issuer
        self._client = open_api(sim.app)

    def put(self, claims: dict[str, Any] | None, body: dict[str, Any], owner: str = "ada", **headers: str) -> Answer:
        """Set a person, as the user with these claims, or with None as a server."""
        token = self._issuer.make_account_token(ROBOT) if claims is None else self._issuer.make_user_token(**claims)
        return self._client.open(
            f"/v1/people/{owner}", method="PUT", json=body, headers={"Authorization": f"Bearer {token}", **headers}
        )

    def patch(self, claims: dict[str, Any], body: dict[str, Any]) -> Answer:
        """Change some of a person, as the user with these claims."""
        headers = {"Authorization": f"Bearer {self._issuer.make_user_token(**claims)}"}
        return self._client.open("/v1/people/ada", method="PATCH", json=body, headers=headers)

    def resend(self, claims: dict[str, Any], address: str) -> Answer:
        """Send the last mail of Ada's again to another address, as the user with these claims."""
        headers = {"Authorization": f"Bearer {self._issuer.make_user_token(**claims)}"}
        delivery = next(iter(self._sim.app.deliveries_of("ada")))
        path = f"/v1/deliveries/{delivery.id}/resend"
        answer = self._client.open(path, method="POST", json={"address": address}, headers=headers)
        self._sim.advance(DAY)
        return answer

    def list_mails(self) -> list[str]:
        return [each.address for each in self._sim.sent("EMAIL")]

    def put_as_account(self, account: str, owner: str, body: dict[str, Any]) -> Answer:
        """Set a person, as a Google account."""
        headers = {"Authorization": f"Bearer {self._issuer.make_account_token(account)}"}
        return self._client.open(f"/v1/people/{owner}", method="PUT", json=body, headers=headers)

    def mail(self, owner: str = "ada") -> list[str]:
        """Have a result sent to a person; return the addresses that get it."""
        before = len(self._sim.sent("EMAIL"))
        sent = {"handler": "greet", "payload": {"name": "A"}, "delivery_channels": ["EMAIL"]}
        self._sim.app.create(owner=owner, **sent)  # type: ignore[arg-type]
        self._sim.advance(4 * DAY)
        return [each.address for each in self._sim.sent("EMAIL")[before:]]


@pytest.fixture
def api(issuer: Issuer) -> Iterator[Api]:
    """An API for Firebase users, a server and a Google account."""
    with Simulation(app, access=ACCESS) as sim:
        yield Api(sim, issuer)


def contact(address: str, **more: Any) -> dict[str, Any]:
    return {"email": {"address": address, **more}}


@try_each(
    "claims, address, gets",
    [
        (VERIFIED, ADA, [ADA]),
        (VERIFIED, "Ada@Example.COM", [ADA]),
        ({**VERIFIED, "email": "Ada@Example.com"}, ADA, ["Ada@Example.com"]),
        (VERIFIED, EVE, []),
        (VERIFIED, "ada+x@example.com", []),
        (VERIFIED, "ada@example.com.evil.example", []),
        ({**VERIFIED, "email": "mike@example.com"}, "mi\u212ae@example.com", ["mike@example.com"]),
        ({**VERIFIED, "email": "mi\u212ae@example.com"}, "mike@example.com", ["mi\u212ae@example.com"]),
        ({}, ADA, []),
        ({"email_verified": True}, ADA, []),
        ({"email": ADA}, ADA, []),
        *(({"email": ADA, "email_verified": claim}, ADA, []) for claim in (False, None, "true", 1, [True])),
        *(({"email": claim, "email_verified": True}, ADA, []) for claim in (None, "", 1, [ADA], {"address": ADA})),
    ],
)
def test_the_token_verifies_its_own_address(
    issuer: Issuer, claims: dict[str, Any], address: str, gets: list[str]
) -> None:
    """In its own spelling, whatever the case that the user types; no other, and only if it says so."""
    with Simulation(app, access=ACCESS) as sim:
        api = Api(sim, issuer)
        made = api.put(claims, contact(address))
        assert made.status_code == 201, made.text
        assert made.json["email"]["verified"] is bool(gets)
        assert api.mail() == gets
        if not gets:
            refused = api.put(claims, contact(address, verified=True))
            assert refused.status_code == 403, refused.text
            assert api.mail() == []


@try_each("claims, address", [({}, ADA), (VERIFIED, EVE), ({**VERIFIED, "email_verified": False}, ADA)])
def test_a_mail_is_sent_again_to_the_address_that_its_owner_s_token_proves(
    issuer: Issuer, claims: dict[str, Any], address: str
) -> None:
    """Any other is refused, as where it is set, and is not stored."""
    with Simulation(app, access=ACCESS) as sim:
        api = Api(sim, issuer)
        api.put({}, contact("wrong@example.com"))
        assert api.mail() == []
        assert api.resend(claims, address).status_code == 403
        assert api.resend(VERIFIED, ADA).status_code == 200
        assert api.list_mails() == [ADA]


def test_an_address_that_is_verified_later_counts_when_it_is_set_again(api: Api) -> None:
    """The token of that time says so; and it stays when a later token says nothing."""
    api.put({"email": ADA, "email_verified": False}, contact(ADA))
    assert api.mail() == []
    api.put(VERIFIED, contact(ADA))
    assert api.mail() == [ADA]
    assert api.put({}, {**contact(ADA), "name": "A"}).json["email"]["verified"] is True
    assert api.mail() == [ADA]


def test_a_change_in_part_verifies_what_it_names(api: Api) -> None:
    """A token proves an address that is set with it, and leaves one alone that is not named."""
    api.put({}, contact("Ada@example.com"))
    assert api.patch(VERIFIED, {"name": "A"}).json["email"] == {"address": "Ada@example.com", "verified": False}
    assert api.patch({}, contact(ADA, verified=True)).status_code == 403
    assert api.mail() == []
    assert api.patch(VERIFIED, contact(ADA)).json["email"]["verified"] is True
    assert api.mail() == [ADA]
    assert api.patch({}, {"name": "B"}).json["email"]["verified"] is True
    assert api.patch(VERIFIED, contact(EVE)).json["email"]["verified"] is False
    assert api.mail() == []
    assert api.patch({}, {"email": {"verified": True}}).status_code == 400
    assert api.patch({**VERIFIED, "uid": "bob"}, {"name": "B"}).status_code == 404


def test_a_server_says_whose_an_address_is(api: Api) -> None:
    """By `verified`, and not by naming it; the user keeps it, and no token of another address undoes it."""
    assert api.put(None, contact(EVE)).json["email"]["verified"] is False
    assert api.mail() == []
    assert api.put(None, contact(EVE, verified=True)).json["email"]["verified"] is True
    assert api.put(VERIFIED, contact(EVE)).json["email"]["verified"] is True
    assert api.mail() == [EVE]
    assert api.put(None, contact(EVE, verified=False)).json["email"]["verified"] is False
    assert api.mail() == []


def test_a_token_is_its_own_users_alone(api: Api) -> None:
    """An admin's says nothing of others, nor does that of a server that acts for them."""
    assert api.put({**VERIFIED, "uid": "bob"}, contact(ADA)).status_code == 404
    admin = {**VERIFIED, "uid": "root", "admin": True}
    assert api.put(admin, contact(ADA)).json["email"]["verified"] is False
    behalf = {ON_BEHALF_OF: "ada"}
    assert api.put(admin, contact(ADA), **behalf).json["email"]["verified"] is False
    assert api.put(None, contact(ADA), **behalf).json["email"]["verified"] is False
    assert api.put(None, contact(ADA, verified=True), **behalf).status_code == 403
    assert api.mail() == []


def test_the_token_of_a_google_account_does_as_well(api: Api) -> None:
    """For its own address: accounts that are users have no other way."""
    assert api.put_as_account(HUMAN, HUMAN, contact(EVE)).json["email"]["verified"] is False
    assert api.put_as_account(HUMAN, HUMAN, contact(HUMAN)).json["email"]["verified"] is True
    assert api.mail(HUMAN) == [HUMAN]
