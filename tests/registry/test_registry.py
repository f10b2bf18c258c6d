"""One list of each kind: built-in entries, packages' entries, and what is wrong with those."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest

from bullpen.core.errors import BadPlace
from bullpen.core.message import HEARTBEAT, INTERNAL_CHANNELS, PULL_CHANNELS, SCHEDULE
from bullpen.core.outbox.addresses import make_address
from bullpen.core.registry import (
    CHANNELS,
    PROVIDERS,
    REPORTS,
    ChannelInfo,
    Credential,
    LoadProblem,
    Login,
    ProviderInfo,
    ReportInfo,
)
from bullpen.core.settings import DEFAULTS, Settings
from bullpen.ops.services.supervisor import CORE_SERVICES
from bullpen.processor.children.child import Launcher
from bullpen.processor.providers.registry import Providers
from bullpen.reports import Report
from tests.registry.packages import install

CHANNEL = """
from bullpen.core.registry import AddressFormat, ChannelInfo
CHANNEL = ChannelInfo(
    name="pigeon", address=AddressFormat("[A-Z]{3}", "pigeon:LHR"), factory="pigeon_post:Client"
)
class Client:
    pass
"""


REPORT = """
from bullpen.core.registry import ReportInfo
R = ReportInfo(name="ducks", factory=__name__ + ":rows")
def rows(facts):
    return facts
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose packages are installed."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return tmp_path


def test_every_built_in_provider_is_made_and_its_settings_exist(settings: Settings) -> None:
    for name, info in PROVIDERS.built_in.items():
        assert callable(Providers(settings, Launcher()).get(name).run), name
        for each in info.login.credentials if info.login else ():
            assert each.setting in DEFAULTS, name


def test_every_built_in_channel_reads_its_own_example() -> None:
    for name, info in CHANNELS.built_in.items():
        assert info.address is not None, name
        for example in info.address.example.split(" or "):
            channel, _, address = example.partition(":")
            assert str(make_address(channel, address)) == example
        if info.factory and find_spec(info.factory.partition(":")[0]):
            assert callable(resolve_name(info.factory)), name


def test_every_built_in_report_is_loaded() -> None:
    for name, info in REPORTS.built_in.items():
        report = resolve_name(info.factory)
        assert isinstance(report, Report), name
        assert report.name == report.tables[0].name == name


def test_no_package_takes_the_name_of_a_service_or_of_a_channel_of_bullpens_own(path: Path) -> None:
    names = [*CORE_SERVICES, *INTERNAL_CHANNELS, SCHEDULE, "slack", "..", "a/b"]
    entries = dict.fromkeys(names, "taking:CHANNEL")
    install(path, "taking", CHANNELS.group, entries, CHANNEL)
    assert CHANNELS.plugin_names() == []
    assert {each.name for each in CHANNELS.problems()} == set(names)
    assert isinstance(CHANNELS.find("slack"), ChannelInfo)
    assert CHANNELS.find("processor") is None


def test_people_fetch_their_responses_of_channels_that_say_so() -> None:
    assert {"api", "web", "cli", HEARTBEAT, SCHEDULE} == PULL_CHANNELS


def test_a_packages_channel_has_its_own_form_of_address(path: Path) -> None:
    with pytest.raises(BadPlace, match="channel 'pigeon' does not exist"):
        make_address("pigeon", "LHR")
    install(path, "pigeon-post", CHANNELS.group, {"pigeon": "pigeon_post:CHANNEL"}, CHANNEL)
    assert CHANNELS.plugin_names() == ["pigeon"]
    assert str(make_address("pigeon", "LHR")) == "pigeon:LHR"
    with pytest.raises(BadPlace, match="invalid address"):
        make_address("pigeon", "somewhere")
    with pytest.raises(BadPlace, match="channel 'raven' does not exist"):
        make_address("raven", "LHR")
    assert CHANNELS.problems() == []


def test_a_channel_that_cannot_be_loaded_takes_every_printable_address(path: Path) -> None:
    install(path, "lost-post", CHANNELS.group, {"lost": "lost_post:CHANNEL"}, "import nonesuch")
    assert str(make_address("lost", "any where")) == "lost:any where"
    with pytest.raises(BadPlace):
        make_address("lost", "\x07")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nonesuch", "ModuleNotFoundError: No module named 'nonesuch'"),
        ("raise SystemExit('enough')", "SystemExit: enough"),
        ("", "AttributeError"),
        ("CHANNEL = 7", "it is not a ChannelInfo"),
        (CHANNEL.replace('"pigeon",', '"raven",'), "its name is 'raven'"),
        (CHANNEL.replace("class Client", "class Other"), "pigeon_post:Client cannot be loaded"),
    ],
)
def test_an_entry_that_cannot_be_used_is_a_problem_with_a_name(
    path: Path, code: str, reason: str
) -> None:
    install(path, "pigeon-post", CHANNELS.group, {"pigeon": "pigeon_post:CHANNEL"}, code)
    sys.modules.pop("pigeon_post", None)
    (problem,) = CHANNELS.problems()
    assert (problem.kind, problem.name, problem.package) == ("channel", "pigeon", "pigeon-post")
    assert reason in problem.reason
    assert CHANNELS.plugin_names() == ["pigeon"]


def test_of_two_packages_with_one_name_the_first_counts_and_the_other_is_a_problem(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(path / "a", "first", REPORTS.group, {"ducks": "first:R"}, REPORT)
    install(path / "b", "second", REPORTS.group, {"ducks": "second:R"}, REPORT)
    monkeypatch.setattr(sys, "path", [*sys.path, str(path / "a"), str(path / "b")])
    found = REPORTS.find("ducks")
    assert found == ReportInfo(name="ducks", factory="first:rows")
    assert REPORTS.plugins() == [found]
    (problem,) = REPORTS.problems()
    assert (problem.package, "the package first already uses this name" in problem.reason) == (
        "second",
        True,
    )


def test_a_report_of_a_package_is_listed(path: Path) -> None:
    install(path, "costs", REPORTS.group, {"ducks": "costs:R"}, REPORT)
    assert REPORTS.find("ducks") == ReportInfo(name="ducks", factory="costs:rows")
    assert REPORTS.problems() == []


def test_a_provider_is_an_info_or_only_a_callable(path: Path, settings: Settings) -> None:
    code = "class Plug:\n    def __init__(self, *taken):\n        self.taken = taken\n"
    info = (
        "from bullpen.core.registry import ProviderInfo\n"
        'PLUG = ProviderInfo(name="named", factory="plugs:Plug", program="plugger")\n'
    )
    entries = {"bare": "plugs:Plug", "named": "plugs:PLUG"}
    install(path, "plugs", PROVIDERS.group, entries, code + info)
    assert [(each.name, each.program) for each in PROVIDERS.plugins()] == [
        ("bare", None),
        ("named", "plugger"),
    ]
    launcher = Launcher()
    for name in entries:
        assert vars(Providers(settings, launcher).get(name))["taken"] == (settings, launcher)


def test_a_key_belongs_to_the_setting_with_the_longest_fitting_prefix() -> None:
    login = Login(
        credentials=(Credential("anthropic_api_key"), Credential("openai_api_key", prefix="sk-o")),
        directory="",
        directory_variable="",
        files=(),
    )
    assert login.assign("sk-other") == {"openai_api_key": "sk-other", "anthropic_api_key": None}
    assert login.assign("sk-a") == {"openai_api_key": None, "anthropic_api_key": "sk-a"}
    assert not login.configured(Settings())
    assert login.configured(replace(Settings(), openai_api_key="k"))


def test_an_account_has_the_entry_of_its_platform_under_its_own_name(path: Path) -> None:
    code = "from bullpen.core.registry import ChannelInfo\n" + "".join(
        f"{each.upper().replace('-', '_')} = ChannelInfo(name={each!r})\n"
        for each in ("pigeon", "pigeon-post", "slack-own")
    )
    names = {each: f"birds:{each.upper().replace('-', '_')}" for each in ("pigeon", "pigeon-post")}
    install(path, "birds", CHANNELS.group, {**names, "slack-own": "birds:SLACK_OWN"}, code)
    platforms = {
        "slack": "slack",
        "slack-sage": "slack",
        "slack-sage-two": "slack",
        "slack-own": "slack",  # a package cannot take the name of an account
        "pigeon-home": "pigeon",
        "pigeon-post": "pigeon-post",
        "pigeon-post-home": "pigeon-post",
    }
    for name, platform in platforms.items():
        info = CHANNELS.find(name)
        assert isinstance(info, ChannelInfo), name
        assert (info.name, info.platform) == (name, platform)
    for name in ("slack-", "slack_sage", "slack-Sage", "web-ann", "guard", "pigeons", "-slack"):
        assert CHANNELS.find(name) is None, name
    (problem,) = CHANNELS.problems()
    assert str(problem) == (
        "the channel slack-own of the package birds: "
        "it is the name of an account of a built-in channel"
    )
    assert str(make_address("slack-sage", "C0123456789")) == "slack-sage:C0123456789"


def test_a_problem_says_what_and_whose_it_is() -> None:
    problem = LoadProblem("provider", "shout", "bullpen-shout", "it is no ProviderInfo")
    assert str(problem) == (
        "the provider shout of the package bullpen-shout: it is no ProviderInfo"
    )
    assert isinstance(PROVIDERS.find("claude"), ProviderInfo)
