"""The table is the same, whoever has made it."""

from __future__ import annotations

from pathlib import Path

from django.core.management import call_command
from sqlalchemy import Engine, create_engine, inspect
from tests.outbox.shops import open_django_database

from cloudsched.outbox.sqlalchemy import metadata, table


def describe(engine: Engine) -> tuple[object, ...]:
    found = inspect(engine)
    columns = {
        (each["name"], str(each["type"]).upper().replace("BIGINT", "INTEGER"), each["nullable"])
        for each in found.get_columns(table.name)
    }
    listed = found.get_indexes(table.name, include_auto_indexes=True)  # with what makes a column unique
    indexes = {(each["name"], tuple(each["column_names"]), each["unique"]) for each in listed}
    assert len(indexes) == 4
    engine.dispose()
    return columns, indexes


def test_both_make_the_same_table(tmp_path: Path) -> None:
    """So that a project may come from one and go to the other, and the relay's statements fit both."""
    urls = [f"sqlite:///{tmp_path / name}" for name in ("sqlalchemy.db", "django.db")]
    metadata.create_all(made := create_engine(urls[0]))
    with open_django_database(urls[1]):
        assert describe(create_engine(urls[1])) == describe(made)


def test_the_model_has_its_migration(tmp_path: Path) -> None:
    """`makemigrations` finds nothing to do in a user's project."""
    with open_django_database(f"sqlite:///{tmp_path / 'django.db'}"):
        call_command("makemigrations", "--check", "--dry-run", verbosity=0)
