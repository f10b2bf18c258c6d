"""A custom provider gets its own key, and never ours."""

from __future__ import annotations

import json

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from tests.real.anthropic import AnthropicServer
from tests.real.clis import KEY, Cli
from tests.real.office import Office
from tests.real.reply import Say


def test_a_custom_provider_on_claude_gets_its_own_key_and_not_ours(
    office: Office, claude: Cli
) -> None:
    office.hire("ann", claude)
    with AnthropicServer() as other:
        own = CustomProvider(
            id="other",
            harness=Harness.CLAUDE,
            base_url=other.url,
            api_key="other-key",
            model="other-model",
        )
        with office.store.write() as tx:
            add_custom_provider(tx, own)
            add_agent(tx, Agent(id="bob", provider="custom:other"))
        claude.server.answers(Say("From ours."))
        other.answers(Say("From the other."))
        with office.processor(anthropic_api_key=KEY):
            assert office.answer("bob", "hello") == "From the other."
            assert office.answer("ann", "hello") == "From ours."
    (request,) = other.requests
    assert request.headers["authorization"] == "Bearer other-key"
    assert KEY not in json.dumps([request.body, request.headers])
    assert request.body["model"] == "other-model"
    (request,) = claude.server.requests
    assert request.headers["x-api-key"] == KEY
    assert "other-key" not in json.dumps([request.body, request.headers])
    assert {each["provider"] for each in office.attempts()} == {"claude", "custom:other"}
