"""Messages that reach nobody are told where somebody looks, as long as that is so."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, Literal

from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, MINUTE, SECOND

from cloudsched import App, Schedule
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.people.wiring import PeopleWiring

Channel = Literal["EMAIL", "WEB"]
NOT_VERIFIED = "No verified e-mail address of the person."


def store(app: App, owner: str, **fields: Any) -> None:
    spec = PersonSpec.model_validate({"email": {"address": f"{owner}@example.com"}} | fields)
    PeopleWiring.of(app.container).people.put(owner, spec, by=OWN_CODE, may_remove=True)


def remind(pages: Pages, app: App, owner: str, times: int = 1, channels: Sequence[Channel] = ("EMAIL",)) -> None:
    for number in range(times):
        app.create(
            title=f"Plants {number}",
            owner=owner,
            handler="work",
            payload={},
            delivery_channels=channels,
            schedule=Schedule.once(pages.sim.now + SECOND),
        )
    pages.sim.advance(2 * MINUTE)


def read(pages: Pages, who: str, path: str, *, words: bool = False) -> str:
    pages.forget()
    return pages.words(path, who) if words else pages.text(path, who)


def count_unsent(pages: Pages) -> int:
    """Return the number of mails to dora that Home says were not sent. The list behind it has as many."""
    page = read(pages, "admin", "/", words=True)
    found = re.search(r'href="\./(deliveries[^"]+)"[^>]*><b>(?:At least )?(\d+) messages? by', page)
    number = int(found[2]) if found else 0
    assert len(pages.rows(f"/{found[1]}") if found else ()) == number
    return number


def test_mails_are_told_until_they_are_sent_and_not_only_until_an_address_is_verified(pages: Pages, app: App) -> None:
    """On Home and on the person's page, with their number, to those who may see them, and with the act.

    The page of a run counts no try of one that was not sent.
    """
    store(app, "dora")
    remind(pages, app, "dora", 3)
    for path in ("/", "/people/dora"):
        said = f"3 messages by email for dora were not sent in the last 7 days. {NOT_VERIFIED}"
        assert said in read(pages, "viewer", path)
    assert "1 thing needs you" in read(pages, "admin", "/")
    assert "Since " not in read(pages, "admin", "/"), "it would move with the seven days"
    assert "none needs attention" not in read(pages, "admin", "/tasks")
    assert "dora" not in read(pages, "bob", "/")
    for path in ("/deliveries", "/deliveries?unreached=TRUE"):  # equal ones are one block
        text = read(pages, "viewer", path)
        assert "3 deliveries" in text
        assert "2 others for the same reason" in text
        assert len(pages.rows(path)) == 3

    task = app.container.store.list_tasks(TaskQuery("dora"), limit=9).items[0]
    [run] = pages.sim.executions(task.id)
    told = read(pages, "viewer", f"/tasks/{task.id}/executions/{run.id}").partition("Who was told")[2]
    assert "Email for dora" in told
    assert "Not sent" in told
    assert "1 try" not in told

    act = {"way": "email", "address": "dora@example.com"}
    assert "Verify: it is theirs" not in read(pages, "viewer", "/people/dora")
    assert pages.post("viewer", "/people/dora", act).status_code == 403
    assert pages.post("admin", "/people/dora", {**act, "address": "eve@example.com"}).status_code == 412
    assert pages.post("admin", "/people/dora", act).status_code == 303
    assert "not sent in the last 7 days. They can be sent again." in read(pages, "admin", "/")
    assert "3 tasks." in read(pages, "admin", "/tasks")
    assert "Email: dora@example.com (not verified) → dora@example.com" in read(pages, "viewer", "/audit")
    assert "Contact verified:" not in read(pages, "bob", "/audit")
    for path in ("/people/dora", "/deliveries?owner=dora"):  # the rows tell what was so, and no longer is
        assert read(pages, "viewer", path).count(NOT_VERIFIED) == 1
    remind(pages, app, "dora")
    assert len(pages.sim.channel("EMAIL").sent) == 1

    [link] = re.findall(r'href="\.\./(deliveries[^"]+)">Send again', read(pages, "admin", "/people/dora", words=True))
    unsent = re.findall('name="delivery" value="(.+?)"', pages.read(f"/{html.unescape(link)}"))
    assert len(unsent) == count_unsent(pages) == 3
    for sent, left in (unsent[:1], 2), (unsent, 0):  # what was sent already is not sent twice
        form = {"delivery": " ".join(sent), "owner": "dora"}
        assert pages.post("admin", "/deliveries", form).status_code == 303
        pages.sim.advance(2 * MINUTE)
        assert count_unsent(pages) == left
    assert [each.owner for each in pages.sim.channel("EMAIL").sent] == ["dora"] * 4
    assert "Nothing needs attention" in read(pages, "admin", "/people/dora")


def test_what_a_person_does_not_want_is_not_lost(pages: Pages, app: App) -> None:
    """Nor is it lost once they say so, or a week after the last."""
    store(app, "ada", channels={"OTHERS": ()})
    remind(pages, app, "ada")
    assert "Nothing needs you" in read(pages, "admin", "/")
    store(app, "dora")
    remind(pages, app, "dora")
    assert "1 message by email for dora was not sent" in read(pages, "admin", "/")
    store(app, "dora", channels={"OTHERS": ()})
    assert "was not sent" not in read(pages, "admin", "/")
    store(app, "dora")
    pages.sim.advance(8 * DAY)
    assert "was not sent" not in read(pages, "admin", "/")


def test_the_rarest_person_is_not_hidden_by_another(pages: Pages, app: App) -> None:
    """Each has a line, and a number that was cut says so."""
    remind(pages, app, "grace")
    pages.sim.advance(MINUTE)
    store(app, "dora")
    remind(pages, app, "dora", 98)
    text = read(pages, "admin", "/")
    first = text.index("1 message by email for grace was not sent in the last 7 days. No contacts of the owner.")
    assert first < text.index("98 messages by email for dora")
    remind(pages, app, "dora", 3)
    assert "At least 100 messages by email for dora were not sent in the last 7 days." in read(pages, "admin", "/")
    text = read(pages, "admin", "/people/grace", words=True)  # of whom nothing is stored
    assert "“Send again” beside an unsent mail takes their address." in text
    [unsent] = re.findall('name="delivery" value="(.+?)"', text)
    form = {"delivery": unsent, "owner": "grace", "address": "grace@example.com"}
    assert pages.post("admin", "/deliveries", form).status_code == 303
    pages.sim.advance(2 * MINUTE)
    assert [each.owner for each in pages.sim.channel("EMAIL").sent] == ["grace"]
    assert "for grace" not in read(pages, "admin", "/")
