"""No text of somebody's changes how a page around it reads: it is isolated, and what nobody sees is written out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from tests.dashboard.conftest import NOW, add_plain_handlers, get, send

from cloudsched import App, Context
from cloudsched.dashboard.rendering import TEMPLATES
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack

TURNED = "invoice\u202egnp.exe"
HEBREW = "\u05d7\u05e9\u05d1\u05d5\u05df 5"
BELL = "rings\x07 and \u200bhides\u2067"
HOSTILE = {"turned": TURNED, "hebrew": HEBREW, "bell": BELL}
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
TEXT = re.compile(r'>([^<]*)<|(?<= title=")([^"]*)|(?<= aria-label=")([^"]*)')


@pytest.fixture(scope="module")
def hostile() -> Iterator[Stack]:
    """A stack in which titles, owners' notes, errors, progress and results are hostile."""
    app = App()
    add_plain_handlers(app)

    @app.handler("breaks", retry=0)
    def breaks(ctx: Context) -> None:
        ctx.progress(f"going on: {ctx.task.title}")
        ctx.step(str(ctx.task.title)[:20], lambda: ctx.task.title)
        raise ValueError(f"no such file: {ctx.task.title} {ctx.task.description}")

    with run_stack(app, store="sqlite", clock=MovableClock(NOW, frozen=True)) as running:
        for name, title in HOSTILE.items():
            body = {
                "id": name,
                "title": title.replace("\x07", "\u200f"),
                "description": title.replace("\x07", "\u200f"),
                "owner": "ada",
                "handler": "breaks",
                "schedule": {"at": NOW.isoformat()},
            }
            assert send(f"{running.url}/v1/tasks", body).status_code == 201
        send(f"{running.url}/dev/clock", {"advance": "PT1H"})
        yield running


def list_pages(stack: Stack) -> Iterator[str]:
    yield from ("", "tasks", "runs", "calendar?day=2027-03-27", "queues", "people/ada", "tasks?search=rings")
    for name in HOSTILE:
        yield f"tasks/{name}"
        yield f"tasks/{name}/edit"
        (run, *_) = get(f"{stack.url}/v1/tasks/{name}/executions").json()["executions"]
        yield f"tasks/{name}/executions/{run['id']}"


def test_no_page_obeys_a_text_of_somebodys(hostile: Stack) -> None:
    """On every page: no character that turns or hides others in texts and tooltips, and right-to-left ones in <bdi>.

    The field of the title holds the title, so that saving the form again does not rename the task.
    """
    seen = ""
    for path in list_pages(hostile):
        page = get(f"{hostile.url}/ui/{path}")
        assert page.ok, path
        html = re.sub(r"<textarea.*?</textarea>", "", page.text, flags=re.DOTALL)
        for text in map("".join, TEXT.findall(html)):
            assert not UNSEEN.search(unescape(text)), (path, text)
        outside = re.sub(r"<bdi>.*?</bdi>|<title>.*?</title>|<text.*?</text>|<[^>]*>", "", html, flags=re.DOTALL)
        around = outside.partition("\u05d7")
        assert not around[1], (path, around[0][-80:])
        seen += page.text
    assert seen.count("⟨U+202E⟩") > 5
    assert seen.count("<bdi>") > 10
    assert f'value="{TURNED}"' in unescape(get(f"{hostile.url}/ui/tasks/turned/edit").text)


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("<p>{{ x }}</p>", "<p><bdi>a⟨U+202E⟩b</bdi></p>"),
        (
            '<a href="{{ x }}" title="1 > {{ x }}">{{ x }}</a>',
            '<a href="a\u202eb" title="1 > a⟨U+202E⟩b"><bdi>a⟨U+202E⟩b</bdi></a>',
        ),
        (
            '<input value="{{ x }}"{% if x %} aria-label="{{ x }}"{% endif %} name=\'{{ x }}\'>',
            '<input value="a\u202eb" aria-label="a⟨U+202E⟩b" name=\'a\u202eb\'>',
        ),
        ("<title>{{ x }}</title>", "<title>a⟨U+202E⟩b</title>"),
        ("<p>{{ x|dates }}</p>", "<p><bdi>a⟨U+202E⟩b</bdi></p>"),
        ("<p>{{ ('<' ~ y)|dates }}</p>", "<p>&lt;plain</p>"),
        ("<textarea>{{ x }}</textarea>{{ y }}", "<textarea>a\u202eb</textarea>plain"),
        (
            '{% if y %}<b{% if x %} class="q"{% endif %}>{{ x if y else y }}</b>{% endif %}',
            '<b class="q"><bdi>a⟨U+202E⟩b</bdi></b>',
        ),
    ],
)
def test_a_template_prints_texts_as_their_place_allows(template: str, shown: str) -> None:
    assert TEMPLATES.from_string(template).render(x="a\u202eb", y="plain") == shown
