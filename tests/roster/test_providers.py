"""The names of providers: those that exist are taken, by any name that they go by."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bullpen.core.errors import BadProvider, BadText, BullpenError
from bullpen.core.registry import PROVIDERS
from bullpen.core.roster.providers import (
    BUILT_IN_PROVIDERS,
    CustomProvider,
    Harness,
    add_custom_provider,
    resolve_provider_name,
)
from bullpen.core.store.base import Store


def _name(store: Store, given: str) -> str:
    with store.read() as tx:
        return resolve_provider_name(tx, given)


def test_built_in_and_added_ones_are_taken(store: Store) -> None:
    assert [_name(store, each) for each in BUILT_IN_PROVIDERS] == list(BUILT_IN_PROVIDERS)
    assert (_name(store, "anthropic"), _name(store, "openai")) == ("claude", "codex")
    with pytest.raises(BadProvider):
        _name(store, "custom:local")
    local = CustomProvider(
        id="local", harness=Harness.CODEX, base_url="http://127.0.0.1:1", api_key="k"
    )
    with store.write() as tx:
        add_custom_provider(tx, local)
    assert _name(store, "custom:local") == "custom:local"


def test_a_plugins_provider_is_taken(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadProvider):
        _name(store, "plug")
    info = tmp_path / "plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{PROVIDERS.group}]\nplug = plug:Plug\necho = plug:Echo\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert "plug" in PROVIDERS.plugin_names()
    assert "echo" not in PROVIDERS.plugin_names()
    assert _name(store, "plug") == "plug"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("", BadProvider),
        ("nothing", BadProvider),
        ("Claude", BadProvider),
        ("custom:", BadProvider),
        ("custom:nothing", BadProvider),
        ("custom:a\0b", BadText),
        ("\ud800", BadText),
    ],
)
def test_others_are_refused(store: Store, given: str, error: type[BullpenError]) -> None:
    with pytest.raises(error):
        _name(store, given)
