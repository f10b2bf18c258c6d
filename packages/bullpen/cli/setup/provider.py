"""The first question: what answers. It is asked for one word before it is believed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bullpen.cli.probing import ProbeResult, probe
from bullpen.cli.setup.asker import Prompter
from bullpen.cli.setup.home import SetupHome
from bullpen.cli.visible import sanitize
from bullpen.core.errors import BadProvider, BullpenError
from bullpen.core.message import ErrorKind
from bullpen.core.roster.agent import ECHO, HTTP
from bullpen.core.roster.custom_providers import (
    CUSTOM_PREFIX,
    CustomProvider,
    Harness,
    add_custom_provider,
    change_custom_provider,
)
from bullpen.core.roster.programs import PROGRAMS, Program, probe_versions
from bullpen.core.roster.provider_names import (
    BUILT_IN_PROVIDERS,
    PROVIDER_ALIASES,
    plugin_provider_names,
)
from bullpen.core.settings import Settings
from bullpen.core.settings_text import SETTINGS_FILE
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction

CUSTOM = "custom"
AGAIN, OTHER, ANYWAY = "again", "other", "anyway"
HARNESSES = tuple(each.value for each in Harness)
SUBSCRIPTION_PREFIX = "sk-ant-oat"
"""How the tokens of a subscription to claude begin, as its `setup-token` prints them."""


@dataclass(frozen=True, slots=True)
class ChosenProvider:
    """What answers, and what came of asking it; None if it was there before, or is no program."""

    provider: str
    model: str = ""
    probe: ProbeResult | None = None


def choose_provider(home: SetupHome, asker: Prompter) -> ChosenProvider:
    """Ask for a provider until one answers, or its owner goes on all the same."""
    programs = probe_versions(PROGRAMS)
    usual = _default_provider(home, programs)
    _show(home, asker, programs)
    choices = [*PROGRAMS, ECHO, *(CUSTOM_PREFIX + each for each in home.services), CUSTOM]
    while True:
        name = asker.choose("Provider", choices, usual)
        found = _choose_custom(home, asker) if name == CUSTOM else _known(home, asker, name)
        if found is not None:
            return found
        usual = ECHO


def check_provider(
    home: SetupHome, asker: Prompter, given: str, model: str, *, proved: bool
) -> ChosenProvider:
    """The provider that was named on the command line; one that does not answer is refused."""
    name = PROVIDER_ALIASES.get(given, given)
    known = (
        *BUILT_IN_PROVIDERS,
        *plugin_provider_names(),
        *(CUSTOM_PREFIX + each for each in home.services),
    )
    if name not in known:
        raise BadProvider(
            f"there is no provider {name[:60]!r}", hint=f"There are {', '.join(known)}."
        )
    if name == HTTP or not proved:
        return ChosenProvider(name, model)
    found = probe_provider(home.settings, asker, name, model)
    if not found.ok:
        raise BullpenError(
            f"{name} does not answer: {found.error}",
            hint="Mend that, choose another one, or go on all the same with --no-probe.",
        )
    return ChosenProvider(name, model, found)


def probe_provider(
    settings: Settings, asker: Prompter, provider: str, model: str = ""
) -> ProbeResult:
    """Ask it for one word, and tell what came of it."""
    with_model = f" with {model}" if model else ""
    asker.say(f"  {provider}{with_model} is asked for one word ...")
    found = probe(settings, provider, model)
    took = f"{found.seconds:.1f} s"
    if found.ok:
        said = " ".join(sanitize(found.answer).split())[:60]
        asker.say(f"  It answers: {said} ({took})")
    else:
        kind = f" ({found.kind})" if found.kind else ""
        asker.say(f"  It does not answer{kind}: {sanitize(found.error)}")
    return found


def _default_provider(home: SetupHome, programs: dict[str, Program]) -> str:
    return next((each for each in PROGRAMS if programs[each].path is not None), ECHO)


def _show(home: SetupHome, asker: Prompter, programs: dict[str, Program]) -> None:
    for name, program in programs.items():
        there = program.version or "installed"
        asker.say(f"  {name:<10} {there if program.path is not None else 'is not installed'}")
    asker.say(f"  {ECHO:<10} built in: repeats what it is told, needs no account")
    for service in home.services.values():
        asker.say(f"  {CUSTOM_PREFIX + service.id:<10} {service.base_url}")
    asker.say(f"  {CUSTOM:<10} another service of yours, behind claude or codex")


def _known(home: SetupHome, asker: Prompter, name: str) -> ChosenProvider | None:
    """One that is known: with a key, if its owner has one."""
    while True:
        settings, keep = _with_key(home, asker, name)
        found = probe_provider(settings, asker, name)
        decision = "" if found.ok else _what_now(asker, found)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            keep()
            return ChosenProvider(name, probe=found)


def _with_key(home: SetupHome, asker: Prompter, name: str) -> tuple[Settings, Callable[[], None]]:
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
        token = key.startswith(SUBSCRIPTION_PREFIX)
        # The token would win over the key.
        keys = {
            "anthropic_oauth_token": key if token else None,
            "anthropic_api_key": None if token else key,
        }
    what = f"the key for {name}, in {now.home / SETTINGS_FILE}"
    return _with_keys_set(now, keys), lambda: home.save_settings(what, keys)


def _with_keys_set(settings: Settings, keys: Mapping[str, str | None]) -> Settings:
    return replace(
        settings,
        openai_api_key=keys.get("openai_api_key") or settings.openai_api_key,
        anthropic_api_key=keys.get("anthropic_api_key", settings.anthropic_api_key) or "",
        anthropic_oauth_token=keys.get("anthropic_oauth_token", settings.anthropic_oauth_token)
        or "",
    )


def _nothing() -> None:
    """Nothing is to be kept."""


def _what_now(asker: Prompter, found: ProbeResult) -> str:
    if found.kind == ErrorKind.AUTH and found.provider in PROGRAMS:
        asker.say(f"  Log in with `{found.provider}` in another terminal, or give a key.")
    asker.say("  again: once more; other: another provider; anyway: go on with this one")
    return asker.choose("What now", _CHOICES, OTHER)


_CHOICES = (AGAIN, OTHER, ANYWAY)


def _choose_custom(home: SetupHome, asker: Prompter) -> ChosenProvider | None:
    """A service of one's own: it is proved in a home that is gone afterwards."""
    while True:
        try:
            service = _asked_service(asker)
            found = _probe_isolated(home.settings, asker, service)
        except BullpenError as error:
            asker.say(f"  {error}", *([f"  {error.hint}"] if error.hint else []))
            continue
        decision = "" if found.ok else _what_now(asker, found)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            home.keep(
                CUSTOM_PREFIX + service.id,
                partial(_save_provider, service, service.id in home.services),
            )
            return ChosenProvider(CUSTOM_PREFIX + service.id, probe=found)


def _asked_service(asker: Prompter) -> CustomProvider:
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


def _probe_isolated(settings: Settings, asker: Prompter, service: CustomProvider) -> ProbeResult:
    from bullpen.core.store import migrate  # only here: Alembic takes its time

    with tempfile.TemporaryDirectory(prefix="bullpen-setup-") as name:
        apart = replace(settings, home=Path(name), database_url="")
        with closing(open_store(apart, check=False)) as store:
            migrate.upgrade(store)
            with store.write() as tx:
                add_custom_provider(tx, service)
        return probe_provider(apart, asker, CUSTOM_PREFIX + service.id, service.model)


def _save_provider(service: CustomProvider, known: bool, tx: Transaction) -> None:
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
