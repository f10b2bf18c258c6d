"""The first question: what answers. It is asked for one word before it is believed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bullpen.cli.probing import Probe, probe
from bullpen.cli.setup.asker import Asker
from bullpen.cli.setup.home import Home
from bullpen.cli.visible import visible
from bullpen.core.errors import BadProvider, BullpenError
from bullpen.core.message import ErrorKind
from bullpen.core.roster.agent import ECHO, HTTP
from bullpen.core.roster.custom_providers import (
    PREFIX,
    CustomProvider,
    Harness,
    add_custom_provider,
    change_custom_provider,
)
from bullpen.core.roster.programs import PROGRAMS, Program, ask_versions
from bullpen.core.roster.provider_names import ALIASES, BUILT_IN, plugin_names
from bullpen.core.settings import Settings
from bullpen.core.settings_text import FILE
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction

OWN = "custom"
AGAIN, OTHER, ANYWAY = "again", "other", "anyway"
HARNESSES = tuple(each.value for each in Harness)
SUBSCRIPTION = "sk-ant-oat"
"""How the tokens of a subscription to claude begin, as its `setup-token` prints them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What answers, and what came of asking it; None if it was there before, or is no program."""

    provider: str
    model: str = ""
    probe: Probe | None = None


def choose_provider(home: Home, asker: Asker) -> Chosen:
    """Ask for a provider until one answers, or its owner goes on all the same."""
    programs = ask_versions(PROGRAMS)
    usual = _usual(home, programs)
    _show(home, asker, programs)
    choices = [*PROGRAMS, ECHO, *(PREFIX + each for each in home.services), OWN]
    while True:
        name = asker.choose("Provider", choices, usual)
        found = _own(home, asker) if name == OWN else _known(home, asker, name)
        if found is not None:
            return found
        usual = ECHO


def given_provider(home: Home, asker: Asker, given: str, model: str, *, proved: bool) -> Chosen:
    """The provider that was named on the command line; one that does not answer is refused."""
    name = ALIASES.get(given, given)
    known = (*BUILT_IN, *plugin_names(), *(PREFIX + each for each in home.services))
    if name not in known:
        raise BadProvider(
            f"there is no provider {name[:60]!r}", hint=f"There are {', '.join(known)}."
        )
    if name == HTTP or not proved:
        return Chosen(name, model)
    found = prove(home.settings, asker, name, model)
    if not found.ok:
        raise BullpenError(
            f"{name} does not answer: {found.error}",
            hint="Mend that, choose another one, or go on all the same with --no-probe.",
        )
    return Chosen(name, model, found)


def prove(settings: Settings, asker: Asker, provider: str, model: str = "") -> Probe:
    """Ask it for one word, and tell what came of it."""
    with_model = f" with {model}" if model else ""
    asker.say(f"  {provider}{with_model} is asked for one word ...")
    found = probe(settings, provider, model)
    took = f"{found.seconds:.1f} s"
    if found.ok:
        said = " ".join(visible(found.answer).split())[:60]
        asker.say(f"  It answers: {said} ({took})")
    else:
        kind = f" ({found.kind})" if found.kind else ""
        asker.say(f"  It does not answer{kind}: {visible(found.error)}")
    return found


def _usual(home: Home, programs: dict[str, Program]) -> str:
    return next((each for each in PROGRAMS if programs[each].path is not None), ECHO)


def _show(home: Home, asker: Asker, programs: dict[str, Program]) -> None:
    for name, program in programs.items():
        there = program.version or "installed"
        asker.say(f"  {name:<10} {there if program.path is not None else 'is not installed'}")
    asker.say(f"  {ECHO:<10} built in: repeats what it is told, needs no account")
    for service in home.services.values():
        asker.say(f"  {PREFIX + service.id:<10} {service.base_url}")
    asker.say(f"  {OWN:<10} another service of yours, behind claude or codex")


def _known(home: Home, asker: Asker, name: str) -> Chosen | None:
    """One that is known: with a key, if its owner has one."""
    while True:
        settings, keep = _with_key(home, asker, name)
        found = prove(settings, asker, name)
        decision = "" if found.ok else _what_now(asker, found)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            keep()
            return Chosen(name, probe=found)


def _with_key(home: Home, asker: Asker, name: str) -> tuple[Settings, Callable[[], None]]:
    """The settings with the key that was typed, and what keeps it once it is proved."""
    now = home.settings
    there = {
        "claude": now.anthropic_oauth_token or now.anthropic_api_key,
        "codex": now.openai_api_key,
    }
    if name not in there:
        return now, _nothing
    usual = "the one in the settings" if there[name] else "as it has signed in by itself"
    key = asker.secret(f"Key for {name} (empty: {usual})")
    if not key:
        return now, _nothing
    keys: dict[str, str | None] = {"openai_api_key": key}
    if name == "claude":
        token = key.startswith(SUBSCRIPTION)
        # The token would win over the key.
        keys = {
            "anthropic_oauth_token": key if token else None,
            "anthropic_api_key": None if token else key,
        }
    what = f"the key for {name}, in {now.home / FILE}"
    return _keyed(now, keys), lambda: home.keep_settings(what, keys)


def _keyed(settings: Settings, keys: Mapping[str, str | None]) -> Settings:
    return replace(
        settings,
        openai_api_key=keys.get("openai_api_key") or settings.openai_api_key,
        anthropic_api_key=keys.get("anthropic_api_key", settings.anthropic_api_key) or "",
        anthropic_oauth_token=keys.get("anthropic_oauth_token", settings.anthropic_oauth_token)
        or "",
    )


def _nothing() -> None:
    """Nothing is to be kept."""


def _what_now(asker: Asker, found: Probe) -> str:
    if found.kind == ErrorKind.AUTH and found.provider in PROGRAMS:
        asker.say(f"  Log in with `{found.provider}` in another terminal, or give a key.")
    asker.say("  again: once more; other: another provider; anyway: go on with this one")
    return asker.choose("What now", _CHOICES, OTHER)


_CHOICES = (AGAIN, OTHER, ANYWAY)


def _own(home: Home, asker: Asker) -> Chosen | None:
    """A service of one's own: it is proved in a home that is gone afterwards."""
    while True:
        try:
            service = _asked_service(asker)
            found = _prove_apart(home.settings, asker, service)
        except BullpenError as error:
            asker.say(f"  {error}", *([f"  {error.hint}"] if error.hint else []))
            continue
        decision = "" if found.ok else _what_now(asker, found)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            home.keep(PREFIX + service.id, partial(_put, service, service.id in home.services))
            return Chosen(PREFIX + service.id, probe=found)


def _asked_service(asker: Asker) -> CustomProvider:
    return CustomProvider(
        id=asker.text("Its name, for `custom:NAME`", "own"),
        harness=Harness(
            asker.choose(
                "Which command line speaks to it", [each.value for each in Harness], "claude"
            )
        ),
        base_url=asker.text("Its address, as http://127.0.0.1:8000"),
        api_key=asker.secret("Its key"),
        model=asker.text("Model (empty: its own choice)"),
    )


def _prove_apart(settings: Settings, asker: Asker, service: CustomProvider) -> Probe:
    from bullpen.core.store import migrate  # only here: Alembic takes its time

    with tempfile.TemporaryDirectory(prefix="bullpen-setup-") as name:
        apart = replace(settings, home=Path(name), database_url="")
        with closing(open_store(apart, check=False)) as store:
            migrate.upgrade(store)
            with store.write() as tx:
                add_custom_provider(tx, service)
        return prove(apart, asker, PREFIX + service.id, service.model)


def _put(service: CustomProvider, known: bool, tx: Transaction) -> None:
    if known:
        change_custom_provider(
            tx,
            service.id,
            harness=service.harness,
            base_url=service.base_url,
            api_key=service.api_key,
            model=service.model,
        )
    else:
        add_custom_provider(tx, service)
