"""Files are fetched from the platform's own hosts only, up to a limit, and refused in words."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from yarl import URL

from bullpen.channels.files.fetching import (
    BadAnswer,
    Fetched,
    FetchingClient,
    ForeignAddress,
    NotStored,
    NotTaken,
    SignInPage,
    TooLarge,
    Unreachable,
)
from bullpen.channels.files.reachable import Address, Hosts, host_pattern, is_public
from bullpen.channels.platform import Download
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.uploads import UNFINISHED_DIRECTORY
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.files import FileHost
from tests.channels.tls import all_closed, certificate

HOST = "files.platform.test"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", workspace=tmp_path / "workspace")


@pytest.fixture
def host() -> Iterator[FileHost]:
    with FileHost() as running:
        yield running


def fetch(
    settings: Settings,
    source: Download,
    name: str = "report.pdf",
    size: int | None = None,
    **options: object,
) -> Fetched:
    """Fetch with a client of its own."""

    async def run() -> Fetched:
        try:
            async with FetchingClient(settings, **options) as client:  # type: ignore[arg-type]
                return await client.fetch(source, name, size)
        finally:
            await all_closed()

    return asyncio.run(run())


def from_host(host: FileHost, url: str, **headers: str) -> Download:
    return Download(url=url, headers=headers, hosts=(host.url,))


def unfinished(settings: Settings) -> list[Path]:
    """What a refused file left behind."""
    directory = settings.files / UNFINISHED_DIRECTORY
    return list(directory.iterdir()) if directory.exists() else []


def test_a_file_is_stored_with_its_hash_size_and_type(settings: Settings, host: FileHost) -> None:
    url = host.put("/photo", PNG)
    fetched = fetch(settings, from_host(host, url, Authorization="Bearer secret"), "photo.bin")
    saved = fetched.keep(Ids(), "photo.bin")
    assert (fetched.size, fetched.type) == (len(PNG), "image/png")
    assert saved.path.read_bytes() == PNG
    assert saved.path.is_relative_to(settings.files)
    request = host.requests()[0]
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["accept-encoding"] == "identity"
    assert unfinished(settings) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://files.platform.test/x",
        "https://files.platform.test:8443/x",
        "https://files.platform.test.evil.example/x",
        "https://evilfiles.platform.test/x",
        "https://platform.test/x",
        "https://evil.example/?files.platform.test",
        "https://evil.example#files.platform.test",
        "https://evil.example\\@files.platform.test/x",
        "https://files.platform.test@evil.example/x",
        "https://user:password@files.platform.test/x",
        "https://10.0.0.1/x",
        "https://[::1]/x",
        "http://127.0.0.1:9/x",
        "http://127.0.0.1/x",
        "file:///etc/passwd",
        "ftp://files.platform.test/x",
        "//files.platform.test/x",
        "/etc/passwd",
        "",
        "https://",
        "https://files.platform.test:99999/x",
    ],
)
def test_only_urls_on_the_hosts_of_the_platform_are_opened(settings: Settings, url: str) -> None:
    async def never(_: str, __: int) -> Sequence[Address]:
        raise AssertionError("it was resolved")

    with pytest.raises(ForeignAddress):
        fetch(settings, Download(url=url, hosts=(HOST,)), resolve=never)


def test_a_pattern_with_a_dot_means_the_hosts_below_it() -> None:
    hosts = Hosts((".cdn.test", "files.test:8443", "http://127.0.0.1:5000"))
    for url in (
        "https://a.cdn.test/x",
        "https://a.b.CDN.test./x",
        "https://files.test:8443/",
        "http://127.0.0.1:5000/x",
    ):
        assert hosts.includes(URL(url)), url
    for url in (
        "https://cdn.test/",
        "https://.cdn.test/",
        "https://acdn.test/",
        "https://files.test/",
        "http://127.0.0.1:5001/",
        "https://127.0.0.1:5000/",
        "http://localhost:5000/",
    ):
        assert not hosts.includes(URL(url)), url
    assert not Hosts(("http://10.0.0.1:80",)).includes(URL("http://10.0.0.1/"))


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("https://api.telegram.org/file/bot1:x/a", "api.telegram.org"),
        ("https://files.test:8443/x", "files.test:8443"),
        ("http://127.0.0.1:8081/file/x", "http://127.0.0.1:8081"),
    ],
)
def test_the_server_of_the_settings_is_one_of_the_hosts(url: str, pattern: str) -> None:
    assert host_pattern(url) == pattern
    assert Hosts((pattern,)).includes(URL(url))


PRIVATE = (
    *("0.0.0.0", "127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "fec0::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
    *(
        "64:ff9b::10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a00:1::",
        "2002:101:101::",
    ),
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
)
PUBLIC = ("1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101")


def test_private_addresses_are_not_public_in_any_form() -> None:
    wrong = [each for each in PRIVATE if is_public(ipaddress.ip_address(each))]
    wrong += [each for each in PUBLIC if not is_public(ipaddress.ip_address(each))]
    assert wrong == []


# The advisories behind these names: one client, a pinned address, a check of each redirect.


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fd00::1"])
def test_cve_2026_26322_a_host_that_resolves_to_a_private_address_is_not_reached(
    settings: Settings, address: str
) -> None:
    async def resolve(_: str, __: int) -> Sequence[Address]:
        return [ipaddress.ip_address("1.1.1.1"), ipaddress.ip_address(address)]

    with pytest.raises(ForeignAddress, match="not public"):
        fetch(settings, Download(url=f"https://{HOST}/x", hosts=(HOST,)), resolve=resolve)


def test_cve_2026_28467_the_connection_goes_to_the_address_that_was_checked(
    settings: Settings, tmp_path: Path
) -> None:
    """A name that changes between the check and the connection gains nothing."""
    asked = []

    async def resolve(host: str, port: int) -> Sequence[Address]:
        asked.append((host, port))
        return [ipaddress.ip_address("127.0.0.1" if len(asked) == 1 else "127.0.0.2")]

    checked: list[Address] = []

    def allowed(address: Address) -> bool:
        checked.append(address)
        return str(address) == "127.0.0.1"

    server, client = certificate(tmp_path, HOST)
    with FileHost(tls=server) as host:
        host.put("/x", PNG)
        pattern = f"{HOST}:{host.port}"
        source = Download(url=f"https://{pattern}/x", hosts=(pattern,))
        fetched = fetch(settings, source, resolve=resolve, allowed=allowed, tls=client)
        fetched.drop()
        assert asked == [(HOST, host.port)]
        assert [str(each) for each in checked] == ["127.0.0.1"]
        # Its certificate is checked against the name, not the address.
        wrong = Download(
            url=f"https://other.test:{host.port}/x", hosts=(f"other.test:{host.port}",)
        )
        asked.clear()
        with pytest.raises(Unreachable):
            fetch(settings, wrong, resolve=resolve, allowed=allowed, tls=client)
        assert len(host.requests()) == 1


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{other}/secret",
        "http://169.254.169.254/latest/meta-data",
        "https://evil.example/x",
        "file:///etc/passwd",
        "//evil.example/x",
        "https://[::ffff:127.0.0.1]/",
        "http://[",
    ],
)
def test_cve_2026_27488_each_redirect_is_checked_like_the_first_address(
    settings: Settings, host: FileHost, to: str
) -> None:
    with FileHost() as other:
        url = host.redirect("/x", to.format(other=other.port))
        with pytest.raises(ForeignAddress):
            fetch(settings, from_host(host, url))
        assert other.requests() == []


def test_ghsa_pg2v_8xwh_qhcc_credentials_stay_with_the_first_host(
    settings: Settings, host: FileHost
) -> None:
    with FileHost() as cdn:
        target = cdn.put("/y", PNG)
        url = host.redirect("/x", target)
        source = Download(
            url=url, headers={"Authorization": "Basic c2VjcmV0"}, hosts=(host.url, cdn.url)
        )
        fetch(settings, source).drop()
        assert "authorization" in host.requests()[0].headers
        assert "authorization" not in cdn.requests()[0].headers


def test_cve_2026_34504_a_chain_of_redirects_ends(settings: Settings, host: FileHost) -> None:
    for number in range(5):
        host.redirect(f"/{number}", f"/{number + 1}")
    host.put("/5", PNG)
    with pytest.raises(ForeignAddress, match="more than 3 redirects"):
        fetch(settings, from_host(host, f"{host.url}/0"))
    assert len(host.requests()) == 4
    fetch(settings, from_host(host, f"{host.url}/2")).drop()


def test_cookies_and_proxies_of_the_environment_are_not_used(
    settings: Settings, host: FileHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    host.put("/x", PNG, headers={"Set-Cookie": "session=1; Path=/"})

    async def twice() -> None:
        async with FetchingClient(settings) as client:
            for _ in range(2):
                (await client.fetch(from_host(host, f"{host.url}/x"), "x.png")).drop()

    asyncio.run(twice())
    assert ["cookie" in each.headers for each in host.requests()] == [False, False]


def test_a_large_file_is_refused_before_or_while_it_is_read(
    settings: Settings, host: FileHost
) -> None:
    url = host.put("/x", bytes(3 << 20))
    source = from_host(host, url)
    with pytest.raises(TooLarge, match=r"^its size is 31 MB, the limit is 20 MB$"):
        fetch(settings, source, size=31 << 20)
    assert host.requests() == []
    with pytest.raises(TooLarge, match=r"^its size is 3 MB, the limit is 2 MB$"):
        fetch(settings, source, limit=2 << 20)
    host.chunked.add("/x")
    with pytest.raises(TooLarge, match=r"^it is larger than 2 MB$"):
        fetch(settings, source, size=10, limit=2 << 20)
    assert unfinished(settings) == []
    with pytest.raises(TooLarge, match=r"^its size is 50 kB, the limit is 49 kB$"):
        fetch(settings, source, size=51_200, limit=50_000)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_decompression_bomb_is_cut_at_the_limit(
    settings: Settings, host: FileHost, encoding: str
) -> None:
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    headers = {"Content-Encoding": encoding}
    url = host.put("/x", compress(bytes(200 << 20)), headers=headers)
    with pytest.raises(TooLarge):
        fetch(settings, from_host(host, url), limit=1 << 20)
    host.put("/x", compress(PNG * 5000), headers=headers)
    fetched = fetch(settings, from_host(host, url))
    assert fetched.keep(Ids(), "x").path.read_bytes() == PNG * 5000
    for body, error in ((compress(PNG * 5000)[:-30], Unreachable), (b"not compressed", BadAnswer)):
        host.put("/x", body, headers=headers)
        with pytest.raises(error):
            fetch(settings, from_host(host, url))
    host.put("/x", PNG, headers={"Content-Encoding": "br"})
    with pytest.raises(BadAnswer):
        fetch(settings, from_host(host, url))
    assert unfinished(settings) == []


def test_a_page_to_sign_in_is_not_taken_for_the_file(settings: Settings, host: FileHost) -> None:
    host.put("/x", PNG)
    host.fail(Fault.HTML, times=None)
    source = from_host(host, f"{host.url}/x")
    for name, size in (("report.pdf", None), ("page.html", 5000)):
        with pytest.raises(SignInPage):
            fetch(settings, source, name, size)
    host.heal()
    host.put("/x", b"\xef\xbb\xbf \n<!DOCTYPE HTML><p>", "application/pdf")
    with pytest.raises(SignInPage):
        fetch(settings, source)
    page = b"<html><p>Mine</p></html>"
    host.put("/x", page, "text/html")
    fetched = fetch(settings, source, "page.html", len(page))
    assert fetched.type == "text/html"
    fetched.drop()


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        (Fault.CLOSE, {}),
        (Fault.RESET, {}),
        (Fault.HALF, {}),
        (Fault.HANG, {}),
        (Fault.SLOW, {"seconds": 30.0}),
        (Fault.ERROR, {}),
        (Fault.LIMIT, {}),
    ],
)
def test_a_failure_of_the_platform_is_temporary_and_bounded(
    settings: Settings, host: FileHost, fault: Fault, options: dict[str, float]
) -> None:
    url = host.put("/x", PNG)
    host.fail(fault, times=None, seconds=options.get("seconds", 1.0))
    began = time.monotonic()
    with pytest.raises(Unreachable) as raised:
        fetch(settings, from_host(host, url), total_seconds=0.5)
    assert time.monotonic() - began < 10
    assert raised.value.temporary
    assert host.url not in str(raised.value)
    assert unfinished(settings) == []


def test_a_refusal_of_the_platform_is_permanent(settings: Settings, host: FileHost) -> None:
    for status in (204, 206, 304, 400, 401, 403, 404, 410):
        url = host.put("/x", PNG if status != 204 else b"", status=status)
        with pytest.raises(BadAnswer) as raised:
            fetch(settings, from_host(host, url))
        assert not raised.value.temporary


def test_a_host_that_is_gone_is_a_temporary_failure(settings: Settings, host: FileHost) -> None:
    with host.gone(), pytest.raises(Unreachable):
        fetch(settings, from_host(host, f"{host.url}/x"))

    async def unknown(_: str, __: int) -> Sequence[Address]:
        raise OSError("no such host")

    with pytest.raises(Unreachable):
        fetch(settings, Download(url=f"https://{HOST}/x", hosts=(HOST,)), resolve=unknown)


def test_a_full_disk_is_a_refusal_and_not_a_failure(settings: Settings, host: FileHost) -> None:
    full = Settings(home=settings.home, workspace=settings.workspace, free_bytes_floor=1 << 60)
    full.home.mkdir(mode=0o700)
    with pytest.raises(NotStored, match=r"^the disk is full$"):
        fetch(full, from_host(host, host.put("/x", PNG)))


def test_headers_of_a_download_are_not_shown() -> None:
    download = Download(url="https://x", headers={"Authorization": "Bearer secret"})
    assert "secret" not in repr(download)


def test_every_refusal_has_a_reason() -> None:
    for each in NotTaken.__subclasses__():
        assert each.__doc__, each
