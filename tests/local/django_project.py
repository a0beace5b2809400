"""A Django project with logins and cloudsched, visited by people with and without rights; prints what they got."""

import json
import sys

import django
from django.conf import settings

from cloudsched import App

app = App()
app.handler("note", access="users")(lambda: None)

if __name__ == "__main__":
    contrib = [f"django.contrib.{name}" for name in ("auth", "contenttypes", "sessions")]
    security = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
    sessions = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    settings.configure(
        SECRET_KEY="of a test",  # noqa: S106 - as it says
        ALLOWED_HOSTS=["shop.example"],
        ROOT_URLCONF="tests.local.django_project_urls",
        INSTALLED_APPS=[*contrib, "cloudsched.local.django"],
        MIDDLEWARE=[*security, *sessions],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{sys.argv[1]}/shop.db"}},
        CLOUDSCHED_APP=app,
        CLOUDSCHED_DATA=f"{sys.argv[1]}/data",
        LOGIN_URL="/log-in/",
    )
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    app.create(id="of-ada", owner="ada", handler="note", schedule="in 3 days")
    people = {"nobody": None, "staff": User.objects.create_user("staff", is_staff=True)}
    people["boss"] = User.objects.create_superuser("boss")
    seen = {}
    for name, user in people.items():
        browser = Client(enforce_csrf_checks=True, HTTP_HOST="shop.example")
        if user is not None:
            browser.force_login(user)
        page = browser.get("/tools/scheduler/tasks")
        api = browser.get("/tools/scheduler/v1/tasks")
        path = "/tools/scheduler/tasks/of-ada/verbs/pause"
        foreign = browser.post(path, headers={"Origin": "https://evil.example"})
        form = browser.post(path, headers={"Origin": "http://shop.example"})
        seen[name] = [page.status_code, page.headers.get("Location"), "of-ada" in page.text, api.status_code]
        seen[name] += [foreign.status_code, form.status_code, form.headers.get("Location")]
    from cloudsched.dashboard import downloads

    vars(downloads)["PAGE_SIZE"] = 2
    for number in range(5):
        app.create(id=f"t{number}", owner="ada", handler="note", schedule="in 3 days")
    file = browser.get("/tools/scheduler/tasks.csv")  # of the last of them, the superuser
    rows = b"".join(file.streaming_content).decode().splitlines() if file.streaming else []
    seen["file"] = [file.status_code, len(rows), any("ERROR" in row for row in rows)]
    sys.stdout.write(json.dumps(seen))
