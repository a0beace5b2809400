"""A handler asks a person by name: they find the question, answer it with their own key, and see nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from tests.web.callers import DAY, HOUR, MINUTE, RoleHarness

from cloudsched import App, Context, EventTimedOut, Schedule
from cloudsched.testing import START

ABOUT = "what the task is about"


class Decision(BaseModel):
    """An answer."""

    approved: bool


@pytest.fixture
def app() -> App:
    app = App()

    @app.handler("renew", events={"decision": Decision, "other": Decision})
    def renew(ctx: Context, payload: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
        ctx.step("note", lambda: payload["about"])
        try:
            decision, sender = ctx.wait_for(
                "decision", Decision, DAY, by=("user:bob",), question="Renew it?", with_sender=True
            )
        except EventTimedOut:
            return "late"
        if decision.approved:
            ctx.wait_for("other", Decision, DAY, by=("admin",))
        return {"approved": decision.approved, "by": sender.person, "as": sender.role, "key": sender.subject}

    return app


def create(roles: RoleHarness, **more: Any) -> str:
    usual = {"handler": "renew", "payload": {"about": ABOUT}, "title": ABOUT, "schedule": {"at": START.isoformat()}}
    task_id = roles.task("ada", **usual | more)
    roles.sim.advance(MINUTE)
    return task_id


def find_questions(roles: RoleHarness, who: str, owner: str) -> list[dict[str, Any]]:
    found = roles.fetch(who, f"/v1/inboxes/{owner}/messages")["messages"]
    return [each for each in found if "event" in each]


def answer(roles: RoleHarness, who: str, question: dict[str, Any], *, approved: bool = False, **body: Any) -> Any:  # noqa: ANN401 - a response
    path = f"/v1/tasks/{question['taskId']}/events/{question['event']}"
    return roles.ask(who, "POST", path, {"payload": {"approved": approved}, **body})


def test_a_person_finds_the_question_and_answers_it_with_a_key_of_their_own(roles: RoleHarness) -> None:
    """The record and the handler have who it was. The task's owner cannot answer instead, nor an admin."""
    task_id = create(roles)
    (question,) = find_questions(roles, "bob", "bob")
    assert (question["taskId"], question["event"], question["body"]) == (task_id, "decision", "Renew it?")
    for other in ("ada", "admin"):
        refused = answer(roles, other, question)
        assert refused.status_code == 409
        assert "awaited from user:bob" in refused.json["detail"]
    assert answer(roles, "bob", question, executionId=question["executionId"]).status_code == 204
    assert answer(roles, "bob", question, executionId=question["executionId"]).status_code == 204, "a second click"
    roles.sim.advance(MINUTE)
    (run,) = roles.sim.executions(task_id)
    assert run.content == {"approved": False, "by": "user:bob", "as": "person", "key": "key:bob"}
    assert run.defined_by == "users"
    (step,) = [each for each in run.steps if each.kind == "EVENT"] or [
        each for each in roles.sim.app.execution(task_id, run.id).steps if each.kind == "EVENT"
    ]
    assert step.sender is not None
    assert step.sender.person == "user:bob"


def test_a_person_who_is_asked_sees_nothing_else_of_the_task(roles: RoleHarness) -> None:
    """Neither what it is about nor its other events, before the answer and after it; other verbs do not exist.

    Nobody else finds or answers the question: not a worker, a reader, a viewer, nor a user of another name, whatever
    name they give themselves.
    """
    task_id = create(roles)
    (question,) = find_questions(roles, "bob", "bob")
    assert roles.ask("ada", "GET", "/v1/inboxes/bob/messages").status_code == 404
    for stranger in ("reader", "viewer", "worker"):
        assert answer(roles, stranger, question).status_code in {403, 404}
    path, said = f"/v1/tasks/{task_id}/events/decision", {"payload": {"approved": True}}
    assert roles.ask("ada", "POST", path, said, **{"X-On-Behalf-Of": "bob"}).status_code == 403
    reads = ("", "/executions", "/history", "/explain", "/tree", "/upcoming", f"/executions/{question['executionId']}")
    other: dict[str, Any] = {"payload": {"approved": True}}
    acts: dict[str, dict[str, Any]] = {"cancel": {}, "trigger": {}, "pause": {}, "retry": {}, "events/other": other}

    def look() -> list[str]:
        told = [roles.ask("bob", "GET", f"/v1/tasks/{task_id}{path}") for path in reads]
        told += [roles.ask("bob", "POST", f"/v1/tasks/{task_id}/{verb}", body) for verb, body in acts.items()]
        assert {each.status_code for each in told} == {404}
        listed = [roles.ask("bob", "GET", path) for path in ("/v1/tasks", "/v1/executions?status=SUSPENDED")]
        return [each.text for each in (*told, *listed)]

    shown = look()
    wrong = roles.ask("bob", "POST", f"/v1/tasks/{task_id}/events/decision", {"payload": {"approved": "perhaps"}})
    early = answer(roles, "bob", {**question, "event": "other"}, early=True)
    assert (wrong.status_code, early.status_code) == (400, 404)
    given = answer(roles, "bob", question, approved=True)
    assert given.status_code == 204
    roles.sim.advance(MINUTE)
    again = answer(roles, "bob", question, approved=False)
    assert again.status_code in {404, 409}, "it waits for somebody else now"
    shown += [*look(), wrong.text, early.text, given.text, again.text, str(question)]
    assert not [each for each in shown if ABOUT in each or "'other'" in each]


def test_an_answer_that_comes_too_late_is_told_so_as_one_to_no_task_is(roles: RoleHarness) -> None:
    """What is said does not tell a stranger which tasks there are.

    Before, a run that waits looks by itself now and then, and does not ask again: one question is one message.
    """
    create(roles)
    (question,) = find_questions(roles, "bob", "bob")
    roles.ask("bob", "POST", f"/v1/inboxes/bob/messages/{question['id']}/read")
    roles.sim.advance(20 * HOUR)
    (again,) = find_questions(roles, "bob", "bob")
    assert again["isRead"]
    assert roles.sim.app.get(question["taskId"]).runs
    roles.sim.advance(2 * DAY)
    late, stray = answer(roles, "bob", question), answer(roles, "bob", {**question, "taskId": "none"})
    assert (late.status_code, stray.status_code) == (404, 404)
    assert "its time is over" in late.json["detail"]
    assert late.text.replace(question["taskId"], "none") == stray.text


def test_januarys_answer_never_approves_february(roles: RoleHarness) -> None:
    """Once a task has had another run, an answer has to name the one that asked it."""
    monthly = {"rrule": "FREQ=MONTHLY", "dtstart": "2027-01-01T09:00:00", "timezone": "UTC"}
    task_id = create(roles, schedule=monthly)
    roles.sim.advance(9 * HOUR)
    (january,) = find_questions(roles, "bob", "bob")
    roles.sim.advance(31 * DAY)
    february = find_questions(roles, "bob", "bob")[0]
    assert february["executionId"] != january["executionId"]
    assert answer(roles, "bob", january).status_code == 409
    assert answer(roles, "bob", january, executionId=january["executionId"]).status_code in {404, 409}
    assert answer(roles, "bob", february, executionId=february["executionId"]).status_code == 204
    roles.sim.advance(MINUTE)
    assert [each.content == "late" for each in roles.sim.executions(task_id)].count(True) == 1


@pytest.mark.parametrize(
    ("by", "told"), [(("dr-grey",), "'user:dr-grey'"), (("user:a/b",), "by name"), (("person",), "by name")]
)
def test_a_wrong_name_is_told_how_to_write_it(app: App, roles: RoleHarness, by: tuple[str, ...], told: str) -> None:
    @app.handler("wrong", retry=False)
    def wait(ctx: Context) -> object:
        return ctx.wait_for("answer", by=by)

    task = app.create(owner="ada", title="Wrong", handler="wrong", schedule=Schedule.once(START))
    roles.sim.advance(MINUTE)
    (run,) = roles.sim.executions(task.id)
    assert run.error is not None
    assert told in run.error.message
