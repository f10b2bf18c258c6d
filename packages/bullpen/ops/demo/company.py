"""The company of a history: its agents, teams, models, channels and senders."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from zoneinfo import ZoneInfo

from bullpen.core.message import ReplyTo, reply_place

SENDERS = 400
MEMBER_SHARE = 0.8
NEW_SHARE = 0.12
"""The share of senders who are paired during the history, and not before it."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a provider, and its prices in dollars for a million tokens."""

    provider: str
    name: str
    input_price: float
    output_price: float


OPUS = Model("claude", "claude-opus-4-5", 5.0, 25.0)
SONNET = Model("claude", "claude-sonnet-4-5", 3.0, 15.0)
HAIKU = Model("claude", "claude-haiku-4-5", 1.0, 5.0)
GPT = Model("codex", "gpt-5.2", 1.75, 14.0)
GEMINI = Model("opencode", "google/gemini-3-pro", 2.0, 12.0)


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """An agent: its model, how long it runs, and its handoffs."""

    id: str
    name: str
    model: Model
    fallback: Model
    """The model of a tenth of its runs."""
    seconds: float
    """The median length of a run."""
    input_tokens: int
    output_tokens: int
    failures: float
    """The share of its runs that fail on a normal day."""
    handoffs: tuple[tuple[str, float], ...] = ()
    """Agents with the share of its completed runs that hand work to them."""


AGENTS = (
    AgentProfile(
        *("architect", "Architect", OPUS, SONNET, 55, 24_000, 1_900, 0.03),
        (("coder", 0.55), ("tester", 0.2), ("reviewer", 0.15)),
    ),
    AgentProfile(
        "coder",
        "Coder",
        SONNET,
        OPUS,
        95,
        42_000,
        3_800,
        0.06,
        (("reviewer", 0.4), ("tester", 0.1)),
    ),
    AgentProfile("reviewer", "Reviewer", GPT, SONNET, 50, 30_000, 1_200, 0.04, (("coder", 0.2),)),
    AgentProfile("tester", "Tester", GPT, HAIKU, 70, 18_000, 1_500, 0.07, (("coder", 0.15),)),
    AgentProfile(
        *("concierge", "Concierge", HAIKU, SONNET, 12, 6_000, 420, 0.015),
        (("billing", 0.3), ("writer", 0.06)),
    ),
    AgentProfile("billing", "Billing", SONNET, HAIKU, 24, 9_000, 600, 0.03),
    AgentProfile("writer", "Writer", SONNET, HAIKU, 40, 12_000, 2_400, 0.02),
    AgentProfile(
        "analyst", "Analyst", GEMINI, SONNET, 60, 35_000, 1_800, 0.04, (("researcher", 0.5),)
    ),
    AgentProfile(
        *("researcher", "Researcher", GEMINI, OPUS, 120, 60_000, 3_000, 0.05),
        (("writer", 0.25),),
    ),
    AgentProfile("assistant", "Assistant", GPT, HAIKU, 30, 11_000, 700, 0.05),
)


@dataclass(frozen=True, slots=True)
class TeamProfile:
    """A team; its first member leads it."""

    id: str
    name: str
    members: tuple[str, ...]


TEAMS = (
    TeamProfile("dev", "Development", ("architect", "coder", "reviewer", "tester")),
    TeamProfile("support", "Support", ("concierge", "billing", "writer")),
    TeamProfile("research", "Research", ("analyst", "researcher", "writer")),
)

TEAMMATES = {team.id: team.members for team in TEAMS}


@dataclass(frozen=True, slots=True)
class Target:
    """The recipient of messages of people: a team, or one agent."""

    agent: str
    team: str | None
    share: float


TARGETS = (
    Target("concierge", "support", 0.3),
    Target("architect", "dev", 0.2),
    Target("analyst", "research", 0.1),
    Target("coder", None, 0.14),
    Target("writer", None, 0.08),
    Target("billing", None, 0.07),
    Target("assistant", None, 0.06),
    Target("reviewer", None, 0.05),
)


@dataclass(frozen=True, slots=True)
class ChannelProfile:
    """A channel: how many people use it, and how long a delivery takes."""

    name: str
    share: float
    milliseconds: int
    """The median time of one try."""
    failures: float
    """The share of tries that fail on a normal day."""


CHANNELS = (
    ChannelProfile("slack", 0.42, 340, 0.004),
    ChannelProfile("telegram", 0.25, 210, 0.006),
    ChannelProfile("discord", 0.18, 280, 0.008),
    ChannelProfile("whatsapp", 0.15, 900, 0.015),
)
CHANNELS_BY_NAME = {each.name: each for each in CHANNELS}


@dataclass(frozen=True, slots=True)
class Place:
    """A time zone in which people of the company work, and their share."""

    zone: ZoneInfo
    share: float


PLACES = (Place(ZoneInfo("Europe/Berlin"), 0.62), Place(ZoneInfo("America/New_York"), 0.38))
OFFICE = PLACES[0].zone
"""Where the owner works."""


@dataclass(slots=True, eq=False)
class Person:
    """A sender on a channel, and when they wrote."""

    channel: str
    sender_id: str
    name: str
    tier: str
    chat: str
    place: int
    """The index of their place."""
    favourite: Target
    weight: float
    joins_at: int
    first_at: int | None = None
    last_at: int | None = None
    last_out_at: int | None = None
    reply_to: str = field(init=False)
    batch_key: str = field(init=False)

    def __post_init__(self) -> None:
        address = ReplyTo(chat=self.chat)
        self.reply_to = str(address)
        self.batch_key = reply_place(self.channel, self.name, self.sender_id, address)


FIRST_NAMES = (
    *("Ada", "Amir", "Anna", "Ben", "Carla", "Chen", "Clara", "David", "Dana", "Elif", "Emil"),
    *("Eva", "Farid", "Finn", "Grace", "Hana", "Hugo", "Ines", "Ivan", "Jana", "Jonas", "Julia"),
    *("Kai", "Karim", "Lara", "Leo", "Lina", "Luis", "Mara", "Mateo", "Mia", "Nadia", "Noah"),
    *("Nora", "Oscar", "Paula", "Petra", "Rafael", "Rosa", "Samir", "Sofia", "Theo", "Tomas"),
    *("Vera", "Wanda", "Yara", "Yusuf", "Zoe"),
)
LAST_NAMES = (
    *("Adler", "Baker", "Berg", "Costa", "Diaz", "Ernst", "Fischer", "Garcia", "Haas", "Ivanov"),
    *("Jansen", "Keller", "Kim", "Lang", "Lopez", "Marin", "Meyer", "Moreau", "Novak", "Okafor"),
    *("Park", "Peters", "Quinn", "Rossi", "Sato", "Schmidt", "Silva", "Stein", "Tanaka", "Vogel"),
    *("Wagner", "Weber", "Yilmaz", "Zimmer"),
)


def make_people(random: Random, since: int, until: int) -> list[Person]:
    """The senders: a few write most, each on one channel, in one place and mostly to one agent."""
    people = []
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    random.shuffle(names)
    channels = random.choices(CHANNELS, [each.share for each in CHANNELS], k=SENDERS)
    targets = random.choices(TARGETS, [each.share for each in TARGETS], k=SENDERS)
    for number in range(SENDERS):
        channel = channels[number].name
        sender_id, chat = _address(channel, number, random)
        is_new = number >= len(PLACES) and random.random() < NEW_SHARE
        joins_at = random.randrange(since, until) if is_new else since
        people.append(
            Person(
                channel=channel,
                sender_id=sender_id,
                name=names[number],
                tier="member" if random.random() < MEMBER_SHARE else "guest",
                chat=chat,
                # The first ones are there from the beginning, one in each place.
                place=number if number < len(PLACES) else int(random.random() > PLACES[0].share),
                favourite=targets[number],
                weight=1 / math.sqrt(number + 1),
                joins_at=joins_at,
            )
        )
    return people


def _address(channel: str, number: int, random: Random) -> tuple[str, str]:
    """The id of a sender on a channel, and of their direct chat."""
    match channel:
        case "slack":
            return f"U0DEMO{number:05d}", f"D0DEMO{number:05d}"
        case "whatsapp":
            # Numbers from 0100 to 0199 of each area are reserved for fiction.
            phone = f"+1{200 + number:03d}55501{number % 100:02d}"
            return phone, phone
        case "discord":
            user = 100_000_000_000_000_000 + random.randrange(10**16) * 1000 + number
            return str(user), str(user + 10**17)
        case _:
            user = 1_000_000_000 + random.randrange(10**6) * 1000 + number
            return str(user), str(user)
