"""Ids (a prefix and 8 lowercase letters and digits), claim tokens, and the names of agents."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from collections.abc import Callable

from shortuuid import ShortUUID

from bullpen.core.errors import BadName

ID_CHARS = 8
TOKEN_BYTES = 8
RUN_VARIABLE = "BULLPEN_RUN"
"""The environment variable with the token of a run."""
RUN_DIGEST_CHARS = 32
MESSAGE_ID = r"^[A-Za-z0-9._:-]{1,200}$"
"""The ids that clients may choose: safe in a path, a command and a log."""
_MESSAGE_ID = re.compile(MESSAGE_ID)
SYSTEM_AUTHOR = "bullpen"
"""The author of Bullpen's own messages to agents, to people and in rooms."""
SYSTEM_NAMES = frozenset({SYSTEM_AUTHOR, "system"})
"""The names that new agents, teams and senders must not have."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class Ids:
    """Generates ids; `random` returns at least 8 random characters."""

    def __init__(self, random: Callable[[], str] | None = None) -> None:
        # The last 24 characters of a short UUID give three ids; a UUID for each is 8 times slower.
        short = ShortUUID(alphabet=string.digits + string.ascii_lowercase)
        self._random = random or (lambda: short.uuid()[-3 * ID_CHARS :])
        self._stock: list[str] = []

    def new(self, prefix: str) -> str:
        """A new id, such as `api_a1b2c3d4`."""
        return f"{prefix}_{self._take()}"

    def token(self, of: str) -> str:
        """A new claim token, which names its lane or response."""
        return f"{of}.{secrets.token_hex(TOKEN_BYTES)}"

    def _take(self) -> str:
        # Threads share this object; a list's pop() never returns the same piece twice.
        try:
            return self._stock.pop()
        except IndexError:
            text = self._random()
            self._stock.extend(
                text[at : at + ID_CHARS] for at in range(ID_CHARS, len(text), ID_CHARS)
            )
            return text[:ID_CHARS]


def agent_of(token: str) -> str:
    """The agent whose lane this token claims, or whose run has this token."""
    return token.rpartition(".")[0]


def run_token(claim_token: str) -> str:
    """The token of the run of this claim: the agent, and a digest of the claim's token."""
    digest = hashlib.sha256(b"bullpen run " + claim_token.encode()).hexdigest()
    return f"{agent_of(claim_token)}.{digest[:RUN_DIGEST_CHARS]}"


def check_message_id(message_id: str) -> str:
    """The id, if it is a valid message id for a client to choose."""
    if not _MESSAGE_ID.fullmatch(message_id):
        raise BadName(
            f"invalid message id {message_id[:40]!a}",
            hint="Use 1 to 200 letters, digits, dots, colons, hyphens and underscores.",
        )
    return message_id


def check_new_name(name: str) -> str:
    """The name, if it is valid for a new agent or team."""
    if check_name(name) in SYSTEM_NAMES:
        raise BadName(f"the name {name!r} is reserved", hint="Choose another name.")
    return name


def check_name(name: str) -> str:
    """The name, if it is valid for an agent or a team."""
    if not _NAME.fullmatch(name):
        raise BadName(f"invalid name {name[:40]!r}")
    return name
