"""Agents of different providers hand work to each other, and the person hears from both."""

from __future__ import annotations

from bullpen.core.models import MESSAGES
from bullpen.core.roster.teams import Team, add_team
from tests.conformance.verbs import events, responses, rows, statuses
from tests.processor.working import eventually
from tests.real.clis import Cli
from tests.real.office import Office
from tests.real.reply import Say


def hand_over(office: Office, first: Cli, second: Cli) -> None:
    """ann asks bob, bob answers and writes back, ann has the last word."""
    office.hire("ann", first)
    office.hire("bob", second)
    with office.store.write() as tx:
        add_team(tx, Team(id="shepherds", leader="ann", members=("ann", "bob")))
    first.server.answers(Say("I ask bob.\n[@bob: Count the sheep.]"), Say("Seven, then."))
    second.server.answers(Say("I counted.\n[@ann: There are seven.]"))
    with office.processor():
        asked = office.ask("ann", "How many sheep are there?")
        eventually(lambda: statuses(office.store) == {"completed": 3}, "all three are answered")
    told = [(row["agent"], row["channel"], row["sender"]) for row in responses(office.store)]
    assert told == [("ann", "api", "ada"), ("bob", "api", "ada"), ("ann", "api", "ada")]
    said = [str(row["message"]) for row in responses(office.store)]
    assert "I ask bob." in said[0]
    assert "I counted." in said[1]
    assert said[2] == "Seven, then."
    (heard,) = second.server.requests
    assert second.server.prompt(heard.body) == (
        "[Message from teammate @ann]:\nI ask bob.\n\nCount the sheep."
    )
    _, back = first.server.requests
    assert first.server.prompt(back.body) == (
        "[Message from teammate @bob]:\nI counted.\n\nThere are seven."
    )
    found = rows(office.store, MESSAGES)
    assert {row["conversation_id"] for row in found} == {asked}
    assert [(row["agent"], row["from_agent"], row["hop"]) for row in found] == [
        ("ann", None, 0),
        ("bob", "ann", 1),
        ("ann", "bob", 2),
    ]
    assert len(events(office.store, "chain_handoff")) == 2


def test_claude_asks_codex_and_has_its_answer(office: Office, claude: Cli, codex: Cli) -> None:
    hand_over(office, claude, codex)


def test_codex_asks_claude_and_has_its_answer(office: Office, claude: Cli, codex: Cli) -> None:
    hand_over(office, codex, claude)
