# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Refuse what a configuration says in vain, or should not say: a name that nothing reads, and a secret among SETTINGS.

Usage: configuration.py config.example.sh PROJECT < the names that the configuration sets, a line with =, and the
entries of SETTINGS, each on a line

Prints one line for each and exits with 1. No value of SETTINGS is printed.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from pathlib import Path

BASH = re.compile(r"BASH.*|PIPESTATUS|OLDPWD")
"""What bash itself sets meanwhile."""
SECRET_NAME = re.compile(
    r"(?:^|_)(?:SECRETS?|PASSWORD|PASSWD|TOKEN|CREDENTIALS|DSN|(?:API|ACCESS|MODEL|PRIVATE|SIGNING)_KEY)$"
    r"|^CLOUDSCHED_(?:SMTP_URL|APPRISE_URLS|TELEGRAM_BOT|SLACK_APP|SWEEP_PING)$"
)
KEY_NAME = re.compile(r"(?:^|_)KEY$")
"""May also name a column: its value tells."""
KEY_VALUE = re.compile(r"(?=.*[0-9])[A-Za-z0-9_/+=.-]{16,}")
SECRET_VALUE = re.compile(
    r"-----BEGIN |://hooks\.|://[^/@\s]*:[^/@\s]+@|^(?:sk|rk|pk|ghp|gho|glpat|xox[abp])[-_][A-Za-z0-9_-]{8}"
    r"|^AIza[0-9A-Za-z_-]{30}|^eyJ[A-Za-z0-9_-]{10,}\.|^SG\.[A-Za-z0-9_-]{16}"
)
"""Private keys, addresses that are passwords or contain one, and the forms of well-known tokens."""


def is_secret(name: str, value: str) -> bool:
    """Whether a setting is one that only the functions should be able to read."""
    if not value or "PUBLIC" in name:
        return False
    is_key = KEY_NAME.search(name) and KEY_VALUE.fullmatch(value)
    return bool(SECRET_NAME.search(name) or is_key or SECRET_VALUE.search(value))


def explain_secret(name: str, project: str) -> str:
    """Say what to write instead."""
    kept = name.removeprefix("CLOUDSCHED_").lower().replace("_", "-")
    return (
        f"SETTINGS contains {name}, which is secret: whoever may look at a function could read it there. Keep it in "
        f"Secret Manager (gcloud secrets create {kept} --data-file=FILE --project={project}), and write instead: "
        f'SECRETS=("{name}={kept}:1")'
    )


def explain_unknown(name: str, known: list[str]) -> str:
    """Name the nearest setting that exists."""
    near = get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]}?" if near else "docs/reference/settings.md has all that exist."
    return f"The configuration sets {name}, which nothing reads. {hint} Variables of your own have lower-case names."


def main() -> None:
    """Read the input, and print what is wrong."""
    example, project = sys.argv[1:]
    names, end, settings = sys.stdin.read().partition("=\n")
    if not end:
        sys.exit("The configuration cannot be read a second time: it ends the shell that reads it.")
    known = re.findall(r"^([A-Z_]+)=", Path(example).read_text(encoding="utf-8"), re.MULTILINE)
    set_names = [each for each in names.split() if re.fullmatch(r"[A-Z][A-Z0-9_]*", each)]
    pairs = [each.partition("=") for each in settings.splitlines()]
    wrong = [explain_unknown(each, known) for each in set_names if each not in known and not BASH.fullmatch(each)]
    wrong += [explain_secret(name, project) for name, _, value in pairs if is_secret(name, value)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
