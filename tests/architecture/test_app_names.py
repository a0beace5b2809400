"""What completion shows on an app is what its users call."""

from __future__ import annotations

from cloudsched import App, Settings

REGISTER = {"handler", "scheduled", "on_failure", "mail_template", "dependency_overrides"}
TASKS = {"create", "run_now", "get", "tasks", "update", "patch", "delete", "upcoming"}
READ = {"to_draft", "read_draft", "check", "put", "put_content"}
COMMANDS = {"pause", "resume", "cancel", "trigger", "snooze", "retry", "backfill", "send_event"}
DRAFTS = {"draft", "confirm"}
RESULTS = {"executions", "find_executions", "execution", "deliveries", "tree", "inbox", "put_person"}
DECLARED = {"declared_tasks", "apply_declarations"}
RUN = {"deliver", "sweep", "acting_with", "limited_by", "override", "close", "container"}


def test_an_app_shows_what_its_users_call() -> None:
    """Its store, locks, engine and other parts are one name further, in `container`."""
    names = {name for name in dir(App(Settings(store="sqlite"))) if not name.startswith("_")}
    assert names == REGISTER | TASKS | READ | DRAFTS | COMMANDS | RESULTS | DECLARED | RUN


def test_an_override_ends_with_its_block() -> None:
    """The app has its earlier parts again, also after an error; its handlers are the same throughout."""
    app = App(Settings(store="sqlite"))
    app.handler("before")(lambda: None)
    before = app.container
    try:
        with app.override(Settings(project="other")):
            assert app.container is not before
            assert app.container.settings.project == "other"
            app.handler("within")(lambda: None)
            _ = dict[str, str]()["an error in the block"]
    except KeyError:
        assert app.container is before
    assert {"before", "within"} <= {each.name for each in app.container.registry}
