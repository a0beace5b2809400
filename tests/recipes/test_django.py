"""The recipe for Django, in a project and a process of its own, since Django is set up once in a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.harness import run_to_end
from tests.recipes.conftest import read_code

SETTINGS = """
SECRET_KEY = "of a test"
INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3", "CONN_MAX_AGE": 60}}
USE_TZ = True
"""
MODELS = """
from django.db import models

class Order(models.Model):
    amount = models.IntegerField()
    billed = models.BooleanField(default=False)

class Invoice(models.Model):
    run = models.CharField(max_length=100, unique=True)
    total = models.IntegerField()
"""
TEST = '''
import time
from datetime import UTC, datetime, timedelta

import pytest
from handlers import Invoice, Order, app
from django.core.management import call_command
from django.db import connection

from cloudsched.testing import Simulation

START = datetime(2027, 3, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _tables():
    call_command("migrate", run_syncdb=True, verbosity=0)
    Order.objects.all().delete()
    Invoice.objects.all().delete()
    Order.objects.create(amount=5)
    Order.objects.create(amount=7)
    yield
    connection.close()


def test_each_month_is_billed_once():
    """Two months make two invoices, and an order is on one of them."""
    with Simulation(app, START) as sim:
        sim.advance(timedelta(days=62))
        assert [each.content for each in sim.executions("bill_customers")] == [12, 0]
    assert not Order.objects.filter(billed=False).exists()


def test_a_connection_that_is_too_old_is_replaced_before_and_closed_after(monkeypatch):
    """The handler never sees it, and its own is closed once that is too old, as after a request."""
    connection.ensure_connection()
    stale = connection.connection
    connection.close_at = time.monotonic() - 1
    seen = []
    original = Order.objects.filter

    def look(*args, **kwargs):
        seen.append(connection.connection is not stale)
        connection.close_at = time.monotonic() - 1
        return original(*args, **kwargs)

    monkeypatch.setattr(Order.objects, "filter", look)
    with Simulation(app, START) as sim:
        sim.advance(timedelta(days=32))
    assert seen == [True]
    assert connection.connection is None


def test_a_failure_rolls_back_and_the_retry_bills(monkeypatch):
    """Nothing of the first attempt stays, and the connection is usable."""
    errors = iter([RuntimeError("the process is killed")])
    original = Invoice.objects.get_or_create

    def fail_once(*args, **kwargs):
        found = original(*args, **kwargs)
        error = next(errors, None)
        if error:
            raise error
        return found

    monkeypatch.setattr(Invoice.objects, "get_or_create", fail_once)
    with Simulation(app, START) as sim:
        sim.advance(timedelta(days=32))
        (execution,) = sim.executions("bill_customers")
        assert (execution.content, len(execution.attempts)) == (12, 2)
    assert Invoice.objects.count() == 1
'''


def test_the_recipe_passes_the_tests_of_a_django_project(tmp_path: Path) -> None:
    """ORM connections are checked around each attempt, transactions roll back, and an occurrence bills once."""
    (tmp_path / "shop").mkdir()
    for name, text in {
        "shop/__init__.py": "",
        "shop/settings.py": SETTINGS,
        "shop/models.py": MODELS,
        "handlers.py": read_code("web-frameworks.md#Handlers that use your models")["handlers"],
        "test_shop.py": TEST,
    }.items():
        (tmp_path / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = run_to_end(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=tmp_path,
        env=environment
        | {"DJANGO_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": f"{tmp_path}:{environment.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
