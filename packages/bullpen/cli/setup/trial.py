"""The last question: a message, sent for real, and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from bullpen.cli.asking import SENDER, enqueue_message, open_waiting_store, wait_for_answers
from bullpen.cli.response import CLI
from bullpen.cli.screen import Screen
from bullpen.cli.services.down import stop_all
from bullpen.cli.services.ready import print_failure_reason
from bullpen.cli.services.restart import restart_services
from bullpen.cli.services.up import start_services
from bullpen.cli.setup.asker import Prompter
from bullpen.cli.setup.home import SetupHome
from bullpen.cli.waited import exit_status, print_wait_result, wait_fields
from bullpen.core.conversations.following import ConversationFollower
from bullpen.core.conversations.newest import conversation_cost
from bullpen.core.events.tail import EventTail
from bullpen.core.message import NewMessage
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings_file import services_reading

TRIAL_TEXT = "Say hello in one short sentence."
TRIAL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of the message."""

    status: int
    document: dict[str, object]


def ensure_running(home: SetupHome, asker: Prompter) -> bool:
    """Start Bullpen, or what of it has to see the new settings; false if it does not run."""
    supervisor = Supervisor(home.settings)
    if not supervisor.alive():
        if not asker.yes("Bullpen does not run. Start it?"):
            return False
        _start(home)
        asker.say("  It runs. `bullpen down` stops it, `bullpen status` shows it.")
        return True
    concerned = services_reading(
        home.new_settings, [each["name"] for each in supervisor.services()]
    )
    if home.new_settings and concerned:
        names = ", ".join(concerned)
        if asker.yes(f"Bullpen runs, and sees the new settings after a restart. Restart {names}?"):
            for name in restart_services(home.settings, concerned):
                print_failure_reason(home.settings, name)
    return True


def send_trial(home: SetupHome, agent: str, *, as_json: bool) -> TrialResult:
    """Send a message to this agent, and show what it answers."""
    new = NewMessage(agent=agent, message=TRIAL_TEXT, channel=CLI, sender=SENDER)
    screen = Screen(quiet=as_json, silent=as_json)
    with open_waiting_store(home.settings) as store:
        position, conversation = enqueue_message(store, new, "", (), None)
        following = ConversationFollower(store, conversation, CLI, EventTail(store, position))
        waited = wait_for_answers(following, screen, TRIAL_SECONDS)
        with store.read() as tx:
            cost = conversation_cost(tx, conversation)
    print_wait_result(conversation, waited, screen)
    return TrialResult(exit_status(waited), wait_fields(conversation, waited, cost))


def _start(home: SetupHome) -> None:
    try:
        _, failed = start_services(home.settings)
    except KeyboardInterrupt:
        stop_all(home.settings)  # it was not there before
        raise
    for name in failed:
        print_failure_reason(home.settings, name)
