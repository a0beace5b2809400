"""Crontabs as tasks: what a line means, what is refused, and what an import changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instants import DAY

from cloudsched import Schedule
from cloudsched.cli.job_files import Job, ReadFile, read_crontab
from cloudsched.testing import Simulation

Load = Callable[..., tuple[int, str]]

NIGHTLY = "30 2 * * * /usr/local/bin/backup --full\n"


def read(text: str | bytes, *, timezone: str | None = None, has_user: bool = False) -> ReadFile:
    content = text if isinstance(text, bytes) else text.encode()
    return read_crontab(content, timezone=timezone, has_user=has_user, prefix="crontab")


def read_one(line: str, *, has_user: bool = False) -> Job:
    found = read(line, has_user=has_user)
    assert not found.refusals
    (job,) = found.jobs
    return job


def fires(job: Job, after: datetime = datetime(2027, 1, 1, tzinfo=UTC)) -> str:
    """Return when a job runs first, in its own zone's clock as UTC shows it."""
    assert isinstance(job.schedule, Schedule)
    following = job.schedule.next_after(after)
    return f"{following:%a %d %b %H:%M}"


@pytest.mark.parametrize(
    ("line", "command", "first"),
    [
        ("30 2 * * * backup", "backup", "Fri 01 Jan 02:30"),
        ("  30\t2 *  *\t* \tbackup  --full  ", "backup  --full", "Fri 01 Jan 02:30"),
        ("@daily backup", "backup", "Sat 02 Jan 00:00"),
        ("0 9 * * mon-fri report", "report", "Fri 01 Jan 09:00"),
        ("0 0 1,15 * 3 both", "both", "Wed 06 Jan 00:00"),
        ("5 4 * * sun A=1 command with=signs", "A=1 command with=signs", "Sun 03 Jan 04:05"),
        ("0 5 * * * tar czf /b # not a comment", "tar czf /b # not a comment", "Fri 01 Jan 05:00"),
        ("0 5 * * * crlf\r", "crlf", "Fri 01 Jan 05:00"),
        ("\ufeff0 5 * * * marked", "marked", "Fri 01 Jan 05:00"),
    ],
)
def test_a_line_becomes_a_schedule_and_a_command(line: str, command: str, first: str) -> None:
    """As crontab(5) reads it: blanks, names, macros, a day of the month or of the week, no comments within a line."""
    job = read_one(line + "\n")
    assert (job.payload, fires(job)) == ({"command": command}, first)


def test_percent_signs_begin_the_standard_input() -> None:
    r"""The first one ends the command, each further one a line of its input; ``\%`` is the sign itself."""
    job = read_one(r"0 9 * * * mail -s 100\% ada%Hello,%it is 5\% now")
    assert job.payload == {"command": "mail -s 100% ada", "stdin": "Hello,\nit is 5% now\n"}


def test_variables_and_zones_hold_from_their_line_on() -> None:
    """CRON_TZ is the zone of the lines below it; empty, it is that of the option again; others go to the command."""
    found = read(
        "0 9 * * * a\nCRON_TZ=America/New_York\nFOO = 'b c'\n0 9 * * * b\n\"X\"=\nCRON_TZ=\n0 9 * * * c\n",
        timezone="Europe/Paris",
    )
    assert [fires(job) for job in found.jobs] == ["Fri 01 Jan 08:00", "Fri 01 Jan 14:00", "Fri 01 Jan 08:00"]
    environments = [job.payload.get("environment") for job in found.jobs]
    assert environments == [None, {"FOO": "b c"}, {"FOO": "b c", "X": ""}]


@pytest.mark.parametrize(
    ("lines", "timezone", "found"),
    [
        ("TZ=Asia/Tokyo", None, "refused"),
        ("'TZ' = Asia/Tokyo", None, "refused"),
        ("CRON_TZ=America/New_York\nTZ=Asia/Tokyo", None, "Fri 01 Jan 14:00"),
        ("TZ=Asia/Tokyo\nCRON_TZ=America/New_York", None, "Fri 01 Jan 14:00"),
        ("TZ=Asia/Tokyo\nCRON_TZ=America/New_York\nCRON_TZ=", None, "refused"),
        ("TZ=Asia/Tokyo", "Europe/Paris", "Fri 01 Jan 08:00"),
    ],
)
def test_a_zone_that_only_some_crons_plan_by_is_never_guessed(lines: str, timezone: str | None, found: str) -> None:
    """TZ alone leaves open what the times mean. Beside CRON_TZ or the option, it is a variable for the command."""
    read_file = read(f"{lines}\n0 9 * * * report\n", timezone=timezone)
    if found == "refused":
        assert not read_file.jobs
        assert "CRON_TZ" in read_file.refusals[0]
    else:
        (job,) = read_file.jobs
        assert (fires(job), job.payload["environment"]) == (found, {"TZ": "Asia/Tokyo"})


def test_a_system_crontab_names_users() -> None:
    """The word before the command is the user, and part of what makes the id."""
    job, other = read("0 5 * * * root\trun it\n0 5 * * *  ada run it\n", has_user=True).jobs
    assert job.payload == {"command": "run it", "user": "root"}
    assert job.id != other.id


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@reboot start", "call the function where your service starts"),
        ("0~59 * * * * spread", "jitter"),
        ("@every 5m tick", "no time that cron knows"),
        ("61 * * * * x", "minute"),
        ("0 0 31 2 * never", "never fire"),
        ("0 5 * * *", "a command"),
        ("hello world", "five fields"),
        ("CRON_TZ=Mars/Olympus\n0 5 * * * x", "Mars/Olympus"),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_line(line: str, why: str) -> None:
    """The others are read all the same, so that all refusals are seen at once."""
    found = read(f"# head\n{line}\n{NIGHTLY}")
    assert [job.payload["command"] for job in found.jobs] == ["/usr/local/bin/backup --full"] * ("CRON_TZ" not in line)
    assert found.refusals[0].startswith("line ")
    assert why in found.refusals[0]


def test_ids_stay_when_times_and_other_lines_change() -> None:
    """They come from the command; the same command twice has a number."""
    before = read("0 5 * * * a\n0 6 * * * /bin/b -x\n").jobs
    after = read("# moved\n15 7 * * 1 /bin/b -x\n0 5 * * * c\n0 5 * * * a\n0 8 * * * a\n").jobs
    assert before[0].id == after[2].id
    assert before[1].id == after[0].id
    assert before[1].id.startswith("crontab-b-")
    assert after[3].id == f"{after[2].id}-2"


@given(
    st.lists(
        st.sampled_from(["*", "0", "*/5", "1-5", "mon", "@daily", "@reboot", "%", "\\%", "A=1", "x", "\t", "\n", "é"])
    ),
)
def test_no_line_breaks_the_reader(words: list[str]) -> None:
    """The same for what looks like a crontab."""
    found = read(" ".join(words))
    assert all(job.title and isinstance(job.schedule, Schedule) for job in found.jobs)


def test_an_import_shows_the_changes_and_asks(load: Load, sim: Simulation) -> None:
    """Without a yes nothing is stored; with it, the tasks run at their times."""
    code, output = load("crontab", NIGHTLY, "--handler", "any-job", "--timezone", "Europe/Paris", answer="n\n")
    assert (code, len(sim.app.tasks().items)) == (1, 0)
    assert "+ create crontab-backup-" in output
    assert "/usr/local/bin/backup --full" in output
    code, output = load("crontab", NIGHTLY, "--handler", "any-job", "--timezone", "Europe/Paris", answer="y\n")
    assert (code, output.splitlines()[-1]) == (0, "1 change made.")
    (task,) = sim.app.tasks().items
    assert (task.owner, task.timezone) == ("system", "Europe/Paris")
    sim.advance(DAY)
    (record,) = sim.executions(task.id)
    assert (record.content, record.scheduled_for.hour) == ({"command": "/usr/local/bin/backup --full"}, 1)


def test_importing_again_changes_what_differs_and_nothing_else(load: Load, sim: Simulation) -> None:
    """No change writes nothing; a new time edits; what is gone stays, unless it is pruned."""
    both = NIGHTLY + "0 9 * * 1 report --weekly\n"
    assert load("crontab", both, "--handler", "any-job", "--yes")[0] == 0
    writes = sim.counts.writes
    code, output = load("crontab", both, "--handler", "any-job", "--yes")
    assert (code, output.splitlines()[-1], sim.counts.writes) == (0, "Nothing differs.", writes)
    code, output = load("crontab", "45 3 * * * /usr/local/bin/backup --full", "--handler", "any-job", "--check")
    assert code == 1
    assert output.startswith("~ update crontab-backup-")
    assert len(sim.app.tasks().items) == 2
    code, output = load("crontab", NIGHTLY, "--handler", "any-job", "--prune", "--yes")
    assert "- delete crontab-report-" in output
    assert [task.title for task in sim.app.tasks().items] == ["/usr/local/bin/backup --full"]


def test_sets_of_jobs_leave_each_other_alone(load: Load, sim: Simulation) -> None:
    """Two machines' crontabs with the same line, under different names, are two tasks; neither prunes the other's."""
    for name in ("web", "db"):
        assert load("crontab", NIGHTLY, "--handler", "any-job", "--name", name, "--prune", "--yes")[0] == 0
    assert sorted(task.id.partition("-")[0] for task in sim.app.tasks().items) == ["db", "web"]
    assert load("crontab", NIGHTLY, "--handler", "any-job", "--name", "../x", "--yes")[0] == 2


def test_refusals_keep_the_whole_file_out_unless_they_are_skipped(load: Load, sim: Simulation) -> None:
    """All of them are printed, with their lines; then nothing is stored."""
    text = f"@reboot x\n{NIGHTLY}0 5 * * * /bin/y\n"
    code, output = load("crontab", text, "--map", "*/backup*=any-job", "--yes")
    assert (code, len(sim.app.tasks().items)) == (2, 0)
    assert "refused: line 1: @reboot" in output
    assert "refused: line 3: no handler is named for '/bin/y'" in output
    assert "2 jobs cannot be imported" in output
    assert load("crontab", text, "--map", "*/backup*=any-job", "--yes", "--prune", "--skip-refused")[0] == 2
    assert load("crontab", text, "--map", "*/backup*=any-job", "--yes", "--skip-refused")[0] == 0
    assert [task.handler for task in sim.app.tasks().items] == ["any-job"]


def test_a_person_s_task_of_the_same_id_stays(load: Load, sim: Simulation) -> None:
    """The job is refused, and the task is as it was."""
    job = read_one(NIGHTLY)
    before = sim.app.create(id=job.id, handler="plain", schedule="every day at 9")
    code, output = load("crontab", NIGHTLY, "--handler", "any-job", "--yes")
    assert code == 2
    assert "did not declare" in output
    assert sim.app.get(job.id) == before


def test_what_the_terminal_shows_is_only_text(load: Load) -> None:
    """Escape codes of a hostile file do not reach it."""
    _, output = load("crontab", "0 5 * * * \x1b]0;owned\x07x\n@\x1b[2J x\n", "--handler", "any-job", "--dry-run")
    assert "\x1b" not in output
    assert "\x07" not in output


def test_a_handler_without_an_environment_gets_none(load: Load, sim: Simulation) -> None:
    """It is left out and said; so is the whole payload where the handler takes none."""
    text = f"PATH=/bin\nMAILTO=ada\n{NIGHTLY}"
    _, output = load("crontab", text, "--handler", "plain", "--yes")
    assert "line 3: its payload, as plain takes none is left out." in output
    assert "MAILTO is ignored" in output
    assert sim.app.tasks().items[0].payload == {}


def test_a_file_that_is_no_crontab_is_refused_whole(load: Load) -> None:
    """In one sentence, with exit code 2."""
    code, output = load("crontab", b"\xff\xfe0 5 * * * x", "--handler", "any-job", "--yes")
    assert code == 2
    assert "cannot be imported: it is" in output
