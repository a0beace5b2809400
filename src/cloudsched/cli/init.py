"""``cloudsched init``: writes a new project that runs, is tested and can be deployed as it is."""

from __future__ import annotations

import re
from pathlib import Path

import click

from cloudsched.config.own_requirement import find_own_requirement

TEMPLATES = Path(__file__).with_name("project_templates")
FILES = {
    "README.md": "readme.md",
    "pyproject.toml": "pyproject.toml",
    ".gitignore": "gitignore",
    ".github/workflows/ci.yml": "ci.yml",
    "functions/handlers.py": "handlers.py",
    "functions/main.py": "main.py",
    "functions/requirements.txt": "requirements.txt",
    "infra/config.sh": "config.sh",
    "tests/test_handlers.py": "test_handlers.py",
}
"""The files of a project, each with its template."""
PIPELINES = {
    "github": {
        ".github/workflows/deploy.yml": "deploy.yml",
        ".github/workflows/pipeline.yml": "pipeline.yml",
        "infra/README.md": "pipeline.md",
        "infra/pipeline.sh": "pipeline.sh",
        "infra/production.sh": "environment.sh",
        "infra/staging.sh": "environment.sh",
    }
}
"""The further files of a project that a CI service deploys."""
AGENTS = {"adk": "adk", "langgraph": "langgraph", "openai-agents": "openai_agents", "pydantic-ai": "pydantic_ai"}
"""The frameworks of agents, by their extras, each with its templates."""
_EXAMPLES = """cloudsched run remind --payload '{"text": "Tea"}'       # call a handler, here and now
cloudsched run onboard --durable --skip-waits           # one that takes a week, to its end
"""
"""The commands that only the handlers of a project without an agent have."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--name", help="The project's name. [default: the folder's]")
@click.option(
    "--ci",
    type=click.Choice(sorted(PIPELINES)),
    help="Write workflows, too, that deploy each commit to staging and, once approved, to production.",
)
@click.option(
    "--agent",
    type=click.Choice(sorted(AGENTS)),
    help="Write an agent of this framework in place of the handlers: it keeps people's schedules, which wake it.",
)
@click.option(
    "--firebase",
    metavar="PROJECT",
    help="Configure it for a Firebase app: its users, and collections beside its own in its database.",
)
def init(*, folder: Path, name: str | None, ci: str | None, agent: str | None, firebase: str | None) -> None:
    """Write a new project into FOLDER: handlers, their tests, the functions to deploy, their configuration, and CI.

    No file that exists is overwritten: if there is one of the same name, nothing is written.
    """
    own_name = _read_name(name or folder.resolve().name)
    files = {**FILES, **(PIPELINES[ci] if ci else {}), **(_list_agent_files(AGENTS[agent]) if agent else {})}
    taken = [path for path in files if (folder / path).exists() or (folder / path).is_symlink()]
    if taken:
        raise click.UsageError(f"{folder} has {', '.join(taken)} already; nothing was written. Name another folder.")
    if firebase is not None and not re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", firebase):
        raise click.UsageError(f"{firebase!r} is not the ID of a project. `firebase projects:list` shows yours.")
    requirement = find_own_requirement()
    values = {"name": own_name, "cloudsched": requirement.specifier, "pinned": requirement.pinned}
    values["project"] = firebase or ""
    values["examples"] = "" if agent else _EXAMPLES
    values["extra"] = f"[{agent}]" if agent else ""
    values["and_extra"] = f",{agent}" if agent else ""
    values["more"] = ', "langchain>=1.0"' if agent == "langgraph" else ""
    values["more_lines"] = "langchain>=1.0\n" if agent == "langgraph" else ""
    try:
        for path, template in files.items():
            values["environment"] = Path(path).stem
            text = (TEMPLATES / f"{template}.template").read_text("utf-8")
            if firebase is not None and path == "infra/config.sh":
                text += (TEMPLATES / "firebase.sh.template").read_text("utf-8")
            for key, value in values.items():
                text = text.replace(f"{{{{{key}}}}}", value)
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("x", encoding="utf-8") as file:
                file.write(text)
            if text.startswith("#!"):
                (folder / path).chmod(0o755)
            click.echo(f"wrote {folder / path}")
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be written: {error.strerror}") from error
    if requirement.local_path is not None:
        click.echo(
            f"cloudsched was installed from {requirement.local_path}, so that is where pyproject.toml and "
            "functions/requirements.txt get it. Other machines, such as CI, need a place that they can reach."
        )
    place = "" if folder == Path() else f"cd {folder} && "
    needed = "--group dev" if agent else "pytest"
    click.echo(f"Next: {place}pip install {needed} && python -m pytest, then cloudsched dev --reload")


def _list_agent_files(framework: str) -> dict[str, str]:
    own = {"functions/handlers.py": f"{framework}.py", "tests/test_handlers.py": f"test_{framework}.py"}
    return {path: f"agents/{template}" for path, template in own.items()}


def _read_name(text: str) -> str:
    """Return the name of a distribution (PEP 508), from that of a folder."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name:
        raise click.UsageError(f"{text!r} has no letter or digit to make a name of; give --name NAME.")
    return name
