"""A fake of Slack: its Web API, Socket Mode, HTTP events and files, for one workspace and one app.

People write with `say`, `edit`, `delete`, `press` and `command`. What the app posted is in `posts`.
"""

from __future__ import annotations

from tests.channels.fakes.slack.blocks import plain
from tests.channels.fakes.slack.events import sign
from tests.channels.fakes.slack.harness import SlackHarness
from tests.channels.fakes.slack.platform import FakeSlack
from tests.channels.fakes.slack.workspace import APP_TOKEN, BOT_TOKEN

__all__ = ["APP_TOKEN", "BOT_TOKEN", "FakeSlack", "SlackHarness", "plain", "sign"]
