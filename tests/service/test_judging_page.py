"""What a judge's page gets: Markdown that cannot do harm, blind questions, instructions; and comments back."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from in_process_service import ADMIN, InProcessService
from surepick.service.markdown import render

HARMLESS = {
    *("p", "br", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "a"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    "a": {"href", "title", "target", "rel"},
    "code": {"class"},
    "ol": {"start"},
    "th": {"style"},
    "td": {"style"},
}


class Elements(HTMLParser):
    """Everything in a piece of HTML that a browser would do something about."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x) [y](file:///etc/passwd)",
        "<javascript:alert(1)>",
        '[x](https://e.org "onmouseover=alert(1)")',
        '[x](https://e.org" onmouseover="alert(1))',
        "![x](https://e.org/pixel.png)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "[x]: javascript:alert(1)\n\n[x]",
        '```"><script>alert(1)</script>\nx\n```',
        '``` x" onclick="alert(1)\nx\n```',
        "| <script> | b |\n|:-:|---|\n| <svg onload=alert(1)> | `<b>` |",
        "<!-- --><style>*{display:none}</style><iframe src=//e.org>",
        "<details open ontoggle=alert(1)>",
        "\\<script>alert(1)</script>",
        "> > > > > " * 200 + "<script>",
        "[" * 500 + "](javascript:x)",
    ],
)
def test_hostile_markdown_becomes_text(text: str) -> None:
    for tag, attributes in Elements(render(text)).seen:
        assert tag in HARMLESS
        assert set(attributes) <= ATTRIBUTES.get(tag, set())
        assert (attributes.get("href") or "https:").lower().startswith(("http:", "https:", "mailto:"))
        assert (attributes.get("style") or "text-align:").startswith("text-align:")
        if tag == "a":
            assert attributes["rel"] == "noopener noreferrer"


def test_markdown_and_plain_text_keep_their_form() -> None:
    assert render("") == ""
    assert render("one\ntwo") == "<p>one<br />\ntwo</p>"
    assert render("a **b** `c < d`") == "<p>a <strong>b</strong> <code>c &lt; d</code></p>"
    assert '<code class="language-python">' in render("```python\nif a < b: pass\n```")
    assert "<table>" in render("| a | b |\n|---|---|\n| 1 | 2 |")
    assert Elements(render("x <b>y</b> & z")).text == "x <b>y</b> & z"
    assert 'href="https://e.org"' in render("[x](https://e.org)")


def texts() -> list[dict[str, Any]]:
    return [{"name": f"gpt-{place}", "label": f"Model {place}", "text": f"**{place}**"} for place in range(3)]


def test_a_blind_question_tells_nothing_about_who_wrote_what(service: InProcessService) -> None:
    study = service.begin(
        title="Which?", items=texts(), blind=True, assume="winner", instructions="Be *fair* <script>."
    )
    judge = service.judge(study)
    reply = service.client.post(f"/studies/{study}/questions?n=2", headers=judge.headers)
    assert "gpt-" not in reply.text
    assert "Model" not in reply.text
    for question in reply.json()["questions"]:
        assert [question[side]["label"] for side in "ab"] == ["A", "B"]
        assert question["a"]["html"].startswith("<p><strong>")
    invitation = service.client.get("/judge/invitation", headers=judge.headers)
    assert invitation.json()["instructions"] == "<p>Be <em>fair</em> &lt;script&gt;.</p>"
    assert "gpt-" not in invitation.text
    assert service.get(f"/studies/{study}")["blind"] is True
    seen = service.judge(service.begin(items=texts())).lease()["questions"][0]
    assert {seen["a"]["name"], seen["b"]["name"]} <= {"gpt-0", "gpt-1", "gpt-2"}


def test_a_blind_study_needs_more_than_names(service: InProcessService) -> None:
    body = {"title": "Which?", "items": [{"name": "x", "text": "one"}, {"name": "y"}], "blind": True}
    reply = service.client.post("/studies", json=body, headers=ADMIN)
    assert (reply.status_code, "'y' has nothing to show" in reply.json()["detail"]) == (422, True)
    study = service.begin(items=texts(), blind=True)
    service.post(f"/studies/{study}/items", {"add": [{"name": "bare"}]}, status=422)
    service.post(f"/studies/{study}/items", {"add": [{"name": "full", "colour": "#ff0000"}]})


def test_comments_reach_the_admin_and_go_with_the_judge(service: InProcessService) -> None:
    study = service.begin()
    jo, flo = service.judge(study, "Jo"), service.judge(study, "Flo")
    mine, theirs = jo.lease()["questions"][0], flo.lease()["questions"][0]

    def say(judge: Any, question: str, text: str, status: int = 204) -> None:
        body = {"question": question, "text": text}
        reply = service.client.post(f"/studies/{study}/comments", json=body, headers=judge.headers)
        assert reply.status_code == status, reply.text

    say(jo, mine["id"], "too early")
    service.now += 1
    say(flo, theirs["id"], "=1+1 <script>")
    service.now += 1
    say(jo, mine["id"], "  The **left** one is cut off. ")
    say(jo, theirs["id"], "not mine", 404)
    say(jo, "nothing", "?", 404)
    say(jo, mine["id"], "x" * 5_001, 422)
    found = service.get(f"/studies/{study}/comments")
    assert [(one["name"], one["text"]) for one in found] == [
        ("Jo", "The **left** one is cut off."),
        ("Flo", "=1+1 <script>"),
    ]
    assert found[0]["items"] == [mine["a"]["name"], mine["b"]["name"]]
    table = service.client.get(f"/studies/{study}/export?what=comments", headers=ADMIN).text
    assert "'=1+1 <script>" in table
    assert service.client.get(f"/studies/{study}/comments", headers=jo.headers).status_code == 401
    say(jo, mine["id"], " ")
    assert len(service.get(f"/studies/{study}/comments")) == 1
    service.client.delete(f"/studies/{study}/judges/{flo.id}", headers=ADMIN)
    assert service.get(f"/studies/{study}/comments") == []
    service.post(f"/studies/{study}/judges/{jo.id}/revoke")
    say(jo, mine["id"], "after", 403)
