"""The public function beside a private API: what people open by a link, and nothing else of the deployment."""

from __future__ import annotations

import pytest
from tests.deployables.fake_project import FUNCTIONS, IN_USE, PROJECT, Cloud
from tests.deployables.fake_resources import NUMBER, get_env
from tests.deployables.test_infra_access import NoQueue
from tests.harness import LocalClient
from werkzeug.wrappers import Request

from cloudsched import App
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.functions import serve_links

LINKS = f"https://cloudsched-links-{NUMBER}.us-central1.run.app"
ACCOUNT = f"serviceAccount:cloudsched-links@{PROJECT}.iam.gserviceaccount.com"
PUBLIC = ("service/cloudsched-links", "allUsers", "roles/run.invoker", "")
pytestmark = pytest.mark.usefixtures("own_process")  # what is deployed configures its logging
CONFIG = {
    "PUBLIC_LINKS": "yes",
    "SECRETS": "(CLOUDSCHED_SMTP_URL=mail-server:1)",
    "SETTINGS": "(CLOUDSCHED_MAIL_FROM=ada@example.com)",
}


@pytest.fixture(name="linked", scope="module")
def deploy_links(tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    """A project with the function for links and a mail server."""
    cloud = Cloud(tmp_path_factory.mktemp("linked"), IN_USE, **CONFIG)
    versions = {"1": "smtps://mailer:s3cret@mail.example:465"}
    cloud.state["secret/mail-server"] = {"name": "mail-server", "annotations": {}, "versions": versions}
    cloud.ok("deploy.sh")
    return cloud


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory, linked: Cloud) -> Cloud:
    """Such a project that the test may change."""
    return Cloud(tmp_path_factory.mktemp("changed"), linked.state, **CONFIG)


def test_it_is_public_and_has_next_to_nothing(linked: Cloud) -> None:
    """Everybody may call it; it has the database: no queue, no secret, no mail. All functions write its address."""
    told = linked.revision("links")
    assert get_env(told)["FUNCTION_TARGET"] == "links"
    assert told["ingress"] == "all"
    assert told["max-instances"] == "1"
    assert f"serviceAccount:{told['service-account']}" == ACCOUNT
    assert not told.get("set-secrets")
    assert {(where, role) for where, member, role, _ in linked.bindings() if member == ACCOUNT} == {
        (f"project/{PROJECT}", "roles/datastore.user"),
    }
    assert {row for row in linked.bindings() if row[1] == "allUsers"} == {PUBLIC}, "the api stays private"
    assert "CLOUDSCHED_TRUST_CLOUD_RUN" not in get_env(told)
    linked.check()
    for function in (*FUNCTIONS, "links"):
        assert get_env(linked.revision(function))["CLOUDSCHED_PUBLIC_URL"] == LINKS


def test_with_its_settings_it_serves_links_and_nothing_else(linked: Cloud) -> None:
    """Without the dispatch secret: an unsubscribe link and a feed work; the API is 404."""
    environment = get_env(linked.revision("links"))
    environment |= {"K_SERVICE": "cloudsched-links"}
    store = SqliteStore()
    app = App(Settings.from_environment(environment), store=store, dispatcher=NoQueue())
    client = LocalClient(Request.application(lambda request: serve_links(app, request)))
    try:
        people = PeopleWiring.of(app.container).people
        spec = PersonSpec.model_validate({"email": {"address": "ada@example.com", "verified": True}})
        people.put("ada", spec, by=OWN_CODE)
        link = PeopleWiring.of(app.container).unsubscribe_links.make("", "ada", Category.REPORT)
        assert client.get(link).status_code == client.post(link).status_code == 200
        assert client.get("/v1/feeds/nothing.ics").status_code == 404
        assert client.post("/v1/links/unsubscribe/made-up").status_code == 404
        assert client.get("/v1/tasks").status_code == 404
    finally:
        store.close()


def test_it_is_upgraded_and_rolled_back_with_the_others(cloud: Cloud) -> None:
    """A rotation leaves it alone; an upgrade and a rollback move its requests; a teardown leaves nothing of it."""
    first = cloud.serving("links")
    cloud.ok("rotate-secret.sh")
    assert cloud.serving("links") == first
    cloud.configure(**CONFIG, MEMORY="1Gi")
    cloud.ok("upgrade.sh")
    assert cloud.serving("links").keys().isdisjoint(first)
    cloud.check()
    cloud.ok("rollback.sh")
    assert cloud.serving("links") == first
    without_links = {name: CONFIG[name] for name in ("SECRETS", "SETTINGS")}
    cloud.configure(**without_links)  # a teardown removes it even if it is not wanted any more
    cloud.ok("teardown.sh", "--yes", "--with-data")
    assert not [key for key in cloud.state if "cloudsched-links" in key and not key.startswith("iam/")]
    assert not [row for row in cloud.bindings() if row[1] == ACCOUNT]


def test_it_can_be_added_later_and_closed_again(cloud_without: Cloud) -> None:
    """deploy.sh adds it, upgrade.sh tells the others, and a rollback to before leaves it; "no" closes it."""
    cloud = cloud_without
    cloud.ok("upgrade.sh", MEMORY="1Gi")
    before = cloud.serving("api")
    assert "Run infra/deploy.sh" in cloud.fails("upgrade.sh", MEMORY="1Gi", PUBLIC_LINKS="yes").err
    assert cloud.changes == 0
    assert "function cloudsched-api" in cloud.ok("deploy.sh").out
    assert PUBLIC in cloud.bindings()
    added = cloud.serving("links")
    cloud.ok("rollback.sh")
    assert (cloud.serving("links"), cloud.serving("api") == before) == (added, False)
    cloud.ok("upgrade.sh")
    cloud.check()
    assert "make function cloudsched-links private" in cloud.run("deploy.sh", "--check", MEMORY="1Gi").out
    cloud.ok("deploy.sh")
    assert PUBLIC not in cloud.bindings()


@pytest.fixture(name="cloud_without")
def copy_deployment(tmp_path_factory: pytest.TempPathFactory, deployed: Cloud) -> Cloud:
    """A deployed project without such a function, as it is by default."""
    assert "service/cloudsched-links" not in deployed.state
    return Cloud(tmp_path_factory.mktemp("without"), deployed.state)


def test_an_upgrade_whose_links_are_broken_is_reverted(cloud: Cloud) -> None:
    """The function for links is asked before it gets requests, too; what Cloud Run refuses is not its fault."""
    before = cloud.serving("links")
    cloud.configure(**CONFIG | {"SETTINGS": "(MUTE=yes CLOUDSCHED_MAIL_FROM=ada@example.com)"})
    assert "The function for links answered 500" in cloud.fails("upgrade.sh").err
    assert cloud.serving("links") == before
    assert not any("/trigger" in call[-1] for call in cloud.calls)
    cloud.state["iam/service/cloudsched-links"].clear()
    cloud.configure(**CONFIG, MEMORY="1Gi")
    assert "Nobody may open links yet" in cloud.ok("upgrade.sh").err
    assert cloud.serving("links") != before
