"""The pages name only what exists: commands, routes, settings, and texts that Bullpen prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bullpen.core.registry import CHANNELS
from bullpen.core.settings import FIELDS
from bullpen.core.settings.file import setting_variable
from bullpen.core.states import LaneState, MessageState, ResponseState
from tests.docs.quoted import (
    DOCS,
    ROOT,
    commands,
    is_route,
    pages,
    program_commands,
    routes,
    unprinted,
)

TERMS = {
    *("message", "response", "agent", "lane", "batch", "run", "attempt", "claim", "lease", "token"),
    *("delivery", "part", "receipt", "team", "room", "conversation", "hop", "channel", "account"),
    *("sender", "pairing", "tier", "service", "held", "dead letter", "heartbeat", "liveness"),
    *("system agent", "supervisor", "guard", "home", "workspace", "key", "scope", "handoff"),
    *(
        "provider",
        "permission",
        "reach",
        "sandbox",
        "schedule",
        "wake-up",
        "owner",
        "owner's token",
    ),
    *("default agent", "idle", "event", "tag", "outbox", "back-off", "reply address", "leader"),
}
"""The words of Bullpen that a stranger does not know, each an entry of the glossary."""

OTHER_VARIABLES = {"BULLPEN_RUN", "BULLPEN_KEY", "BULLPEN_SLACK_SAGE_BOT_TOKEN"}
"""Of a run, of the proxy for clients of TinyAGI, and of an example."""


def test_every_page_is_linked_from_the_index(subtests: pytest.Subtests) -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", index)}
    for page in sorted(DOCS.rglob("*.md")):
        if page != DOCS / "README.md":
            with subtests.test(page=str(page.relative_to(DOCS))):
                assert page.resolve() in linked


def test_every_command_on_a_page_exists_with_its_options(subtests: pytest.Subtests) -> None:
    for page in pages():
        with subtests.test(page=str(page.relative_to(ROOT))):
            wrong = [
                f"bullpen {each.text.strip()}: {problem}"
                for each in commands(page)
                if (problem := each.problem())
            ]
            assert not wrong, "\n".join(wrong)


def test_every_command_that_the_program_names_exists_with_its_options() -> None:
    found = list(program_commands())
    assert len(found) > 300
    wrong = [
        f"{each.page.relative_to(ROOT)}: bullpen {each.text}: {problem}"
        for each in found
        if (problem := each.problem())
    ]
    assert not wrong, "\n".join(wrong)


def test_every_route_on_a_page_exists(subtests: pytest.Subtests) -> None:
    for page in pages():
        with subtests.test(page=str(page.relative_to(ROOT))):
            wrong = [
                f"{method} {path}" for method, path in routes(page) if not is_route(method, path)
            ]
            assert not wrong, "\n".join(wrong)


def test_every_setting_on_a_page_exists(subtests: pytest.Subtests) -> None:
    names = set(FIELDS)
    for channel in CHANNELS.built_in.values():
        names |= {f"{channel.name}.{each.name}" for each in channel.all_settings}
    names |= {"email.password"}
    variables = {setting_variable(each) for each in names} | OTHER_VARIABLES
    for page in pages():
        with subtests.test(page=str(page.relative_to(ROOT))):
            text = page.read_text(encoding="utf-8")
            found = re.findall(
                r"\bconfig (?:get|set|unset) ([a-z_]+)(?:-[a-z]+)?(\.[a-z_]+)?", text
            )
            assert {"".join(each) for each in found} <= names
            assert set(re.findall(r"\bBULLPEN_[A-Z_]+\b", text)) <= variables


def test_every_target_of_make_on_a_page_exists(subtests: pytest.Subtests) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in pages():
        with subtests.test(page=str(page.relative_to(ROOT))):
            text = page.read_text(encoding="utf-8")
            assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE)) <= targets


def test_the_glossary_has_every_state_and_every_term(subtests: pytest.Subtests) -> None:
    text = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    entries = {word.strip("`") for row in rows for word in row.replace("**", "").split(", ")}
    states = {str(each) for kind in (MessageState, ResponseState, LaneState) for each in kind}
    for word in sorted(TERMS | states):
        with subtests.test(word=word):
            assert word in entries


def test_every_text_quoted_under_troubleshooting_is_one_that_is_printed(
    subtests: pytest.Subtests,
) -> None:
    page = Path(DOCS / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            with subtests.test(line=line):
                assert not unprinted(line.strip()), "this text is printed nowhere"
