"""The last question: a message, sent for real, and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from bullpen.cli.asking import SENDER, asking, put, wait_for
from bullpen.cli.response import CLI
from bullpen.cli.screen import Screen
from bullpen.cli.services.down import bring_down
from bullpen.cli.services.ready import say_why
from bullpen.cli.services.restart import restart_some
from bullpen.cli.services.up import bring_up
from bullpen.cli.setup.asker import Asker
from bullpen.cli.setup.home import Home
from bullpen.cli.waited import document, status, tell
from bullpen.core.conversations.following import Following
from bullpen.core.conversations.newest import cost_of
from bullpen.core.events.tail import EventTail
from bullpen.core.message import NewMessage
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings_file import readers

TEXT = "Say hello in one short sentence."
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of the message."""

    status: int
    document: dict[str, object]


def see_to_it_that_it_runs(home: Home, asker: Asker) -> bool:
    """Start Bullpen, or what of it has to see the new settings; false if it does not run."""
    supervisor = Supervisor(home.settings)
    if not supervisor.alive():
        if not asker.yes("Bullpen does not run. Start it?"):
            return False
        _start(home)
        asker.say("  It runs. `bullpen down` stops it, `bullpen status` shows it.")
        return True
    concerned = readers(home.new_settings, [each["name"] for each in supervisor.services()])
    if home.new_settings and concerned:
        names = ", ".join(concerned)
        if asker.yes(f"Bullpen runs, and sees the new settings after a restart. Restart {names}?"):
            for name in restart_some(home.settings, concerned):
                say_why(home.settings, name)
    return True


def try_it(home: Home, agent: str, *, as_json: bool) -> Trial:
    """Send a message to this agent, and show what it answers."""
    new = NewMessage(agent=agent, message=TEXT, channel=CLI, sender=SENDER)
    screen = Screen(quiet=as_json, silent=as_json)
    with asking(home.settings) as store:
        position, conversation = put(store, new, "", (), None)
        following = Following(store, conversation, CLI, EventTail(store, position))
        waited = wait_for(following, screen, PATIENCE_SECONDS)
        with store.read() as tx:
            cost = cost_of(tx, conversation)
    tell(conversation, waited, screen)
    return Trial(status(waited), document(conversation, waited, cost))


def _start(home: Home) -> None:
    try:
        _, failed = bring_up(home.settings)
    except KeyboardInterrupt:
        bring_down(home.settings)  # it was not there before
        raise
    for name in failed:
        say_why(home.settings, name)
