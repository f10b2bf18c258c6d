"""What a failed send means: the errors that `Platform.send` may raise, and nothing else.

    SendFailed
      NotSent               the request did not reach the platform: sent again
        RateLimited         the platform refused it for a time: sent again after that, uncounted
      Refused               the platform refused this part permanently: the response is dead
        Undeliverable       the recipient cannot be reached: the response is dead
          OptedOut          the person has asked for no more messages
          WindowClosed      the platform's time for answers has passed
      ChatMoved             the chat has a new id: sent again there
      OutcomeUnknown        the part may have arrived: looked up, see `Platform.recover`
    ChannelDown             the account does not work at all: a state with a reason, not an exit

Any other exception of `send` counts as `OutcomeUnknown`, because the part may have arrived.
"""

from __future__ import annotations

from bullpen.core.text import visible_line

MAX_REASON_CHARS = 500


class SendFailed(Exception):
    """A part was not sent, or may not have arrived."""

    def __init__(self, reason: str, code: str = "") -> None:
        """`code` is the platform's own code of the error, such as `channel_not_found`."""
        super().__init__(_shown(f"{reason} ({code})" if code else reason))
        self.code = code


class NotSent(SendFailed):
    """The request certainly did not reach the platform, for example because nobody listens."""


class RateLimited(NotSent):
    """The platform asks to wait."""

    def __init__(self, seconds: float, *, account: bool = False) -> None:
        """With `account`, the limit holds for the whole account and not for one chat."""
        super().__init__(f"the platform asks to wait {seconds:g} s")
        self.seconds = seconds
        self.account = account


class Refused(SendFailed):
    """The platform refused the part itself; another attempt would be refused as well."""


class Undeliverable(Refused):
    """The chat or person does not exist, has blocked the bot, or has removed it."""


class OptedOut(Undeliverable):
    """The person has asked for no more messages, for example with STOP."""


class WindowClosed(Undeliverable):
    """The platform allows no free text any more since the person's last message."""


class ChatMoved(SendFailed):
    """The chat has another id now."""

    def __init__(self, to: str) -> None:
        super().__init__(f"the chat has moved to {to}")
        self.to = to


class OutcomeUnknown(SendFailed):
    """The request left, and no answer said what became of it."""


class ChannelDown(Exception):
    """The account cannot work, for now or until a person changes something.

    A permanent fault (a revoked token, a missing scope, a second process with the same token) has a
    hint; the client checks it again after 1, 5 and then every 30 minutes.
    """

    def __init__(self, code: str, reason: str, hint: str = "", *, retry_seconds: float = 0) -> None:
        """`code` is a stable word such as `token_revoked`; `retry_seconds` overrides the pause."""
        self.reason = _shown(reason)
        super().__init__(self.reason)
        self.code = code
        self.hint = hint
        self.retry_seconds = retry_seconds


def _shown(reason: str) -> str:
    """A reason in one line: a platform's own text can have anything in it."""
    return visible_line(reason)[:MAX_REASON_CHARS]
