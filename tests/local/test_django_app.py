"""The Django app: its page is for the project's superusers, and its API for whoever has a credential."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.embedded_services import make_environment
from tests.harness import ROOT, run_to_end


def test_the_page_is_for_superusers(tmp_path: Path) -> None:
    """Whoever has not logged in is sent there, others are refused; a form needs no token, and no other site sends it.

    A download is sent part by part, to its end.

    The project demands a login and a token everywhere; the API below it takes neither a session nor less than a key.
    """
    arguments = [sys.executable, "-m", "tests.local.django_project", str(tmp_path)]
    done = run_to_end(arguments, cwd=ROOT, env=make_environment({}))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "nobody": [302, "/log-in/?next=/tools/scheduler/tasks", False, 503, 403, 403, None],
        "staff": [403, None, False, 503, 403, 403, None],
        "file": [200, 7, False],
        "boss": [200, None, True, 503, 403, 303, "../../../tasks/of-ada?done=pause#said"],
    }
