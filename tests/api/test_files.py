"""Files over the API: in, listed, out, and away."""

from __future__ import annotations

import hashlib
import os
import resource
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from bullpen.core.access.keys import Scope
from bullpen.core.settings import Settings
from tests.api.served import Served, serving
from tests.stores import Stores

MOST = 200_000

ODD_NAMES = {
    "../../etc/passwd": "passwd",
    "..\\..\\boot.ini": "boot.ini",
    "/etc/shadow": "shadow",
    "..": "file",
    ".": "file",
    "": "file",
    ".bashrc": "bashrc",
    "a b\tc.txt": "a_b_c.txt",
    "`rm -rf`;$(x).sh": "rm_-rf_x_.sh",
    "Überblick – März.pdf": "Überblick_März.pdf",
    "%2e%2e%2fx": "2e_2e_2fx",
    "-rf": "rf",
}


@pytest.fixture(scope="module")
def served(stores: Stores) -> Iterator[Served]:
    """An API that takes small files only. They are in no database."""
    with serving(stores.settings("sqlite"), BULLPEN_UPLOAD_BYTES=str(MOST)) as running:
        yield running


@pytest.fixture
def files(served: Served) -> Path:
    """Where the files lie."""
    served.settings.files.mkdir(exist_ok=True)
    return served.settings.files


def upload(
    served: Served,
    data: bytes = b"hello",
    name: str = "a.txt",
    **more: Any,  # noqa: ANN401
) -> requests.Response:
    """Send a file, in the field that is its place unless another one is named."""
    form = {more.pop("field", "file"): (name, data)}
    return served.ask("POST", "/api/files", files=form, **more)


def uploaded(served: Served, data: bytes = b"hello", name: str = "a.txt") -> dict[str, Any]:
    """Send a file that must be taken."""
    response = upload(served, data, name)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def shown(files: Path) -> set[str]:
    """What is there under a name."""
    return {path.name for path in files.iterdir()} - {".uploads"}


def left_over(files: Path) -> list[str]:
    """What is there that is no file of anybody's."""
    return [path.name for path in (files / ".uploads").glob("*")]


def test_a_file_comes_out_as_it_went_in(served: Served, files: Path) -> None:
    data = os.urandom(100_000)
    kept = uploaded(served, data, "report.pdf")
    assert kept["ok"] is True
    assert kept["name"].startswith("file_")
    assert kept["name"].endswith("_report.pdf")
    assert (kept["size"], kept["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    path = Path(kept["path"])
    assert path == files / kept["name"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    response = served.ask("GET", f"/api/files/{kept['name']}")
    assert response.content == data
    assert left_over(files) == []


def test_what_is_downloaded_does_nothing_in_a_browser(served: Served) -> None:
    kept = uploaded(served, b"<script>alert(1)</script>", "page.html")
    headers = served.ask("GET", f"/api/files/{kept['name']}").headers
    assert headers["Content-Disposition"].startswith("attachment")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in headers["Content-Security-Policy"]


def test_two_files_of_one_name_are_two(served: Served) -> None:
    first, second = uploaded(served, b"one"), uploaded(served, b"two")
    assert first["name"] != second["name"]
    assert served.ask("GET", f"/api/files/{first['name']}").content == b"one"


@pytest.mark.parametrize("given", ODD_NAMES, ids=ascii)
def test_a_name_that_leads_elsewhere_leads_nowhere(served: Served, files: Path, given: str) -> None:
    # The library that sends it would shorten or mend some of these names.
    head = f'Content-Disposition: form-data; name="file"; filename="{given}"'
    response = raw(served, f"--x\r\n{head}\r\n\r\nhello\r\n--x--\r\n".encode())
    assert response.status_code == 200, response.text
    kept = response.json()
    assert kept["name"].split("_", 2)[2] == ODD_NAMES[given].replace("\\", "")
    assert Path(kept["path"]).resolve().parent == files.resolve()


def test_a_long_name_keeps_its_ending(served: Served) -> None:
    name = uploaded(served, name="ö" * 300 + ".tar.gz")["name"]
    assert name.endswith("ö.gz")
    assert len(name.encode()) < 120
    assert served.ask("GET", f"/api/files/{name}").content == b"hello"


def raw(served: Served, body: bytes, **headers: str) -> requests.Response:
    """A form as it is."""
    given = {"Content-Type": "multipart/form-data; boundary=x", **headers}
    return served.ask("POST", "/api/files", data=body, headers=given)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"--x--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nno file\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\ncut off',
        b'--x\r\nContent-Disposition: form-data; name="other"; filename="a"\r\n\r\n1\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n1\r\n' * 2
        + b"--x--\r\n",
        b"--x\r\n\r\n\r\n--x--\r\n",
    ],
    ids=lambda body: str(body[-20:]),
)
def test_a_form_without_one_file_is_refused(served: Served, files: Path, body: bytes) -> None:
    before = shown(files)
    response = raw(served, body)
    assert (response.status_code, response.json()["code"]) in (
        (400, "bad_request"),
        (415, "not_json"),
    )
    assert shown(files) == before
    assert left_over(files) == []


def test_a_form_without_a_boundary_is_refused(served: Served) -> None:
    for kind in ("multipart/form-data", "multipart/form-data; boundary=\xff"):
        response = served.ask(
            "POST", "/api/files", data=b"x", headers={"Content-Type": kind.encode("latin1")}
        )
        assert response.status_code == 400


def test_another_kind_of_body_is_refused(served: Served) -> None:
    assert served.refused("POST", "/api/files", {"file": "x"}) == (415, "not_json")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_over_the_limit_is_refused(served: Served, files: Path, chunked: bool) -> None:
    before = shown(files)
    if chunked:
        head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        parts = iter([head, *[b"y" * 50_000] * 8, b"\r\n--x--\r\n"])
        response = raw(served, parts)  # type: ignore[arg-type]
    else:
        response = upload(served, b"y" * (MOST + 1))
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    assert shown(files) == before
    assert left_over(files) == []


def test_a_file_may_be_larger_than_other_requests(stores: Stores) -> None:
    with serving(stores.settings("sqlite"), BULLPEN_BODY_BYTES="2000") as running:
        assert uploaded(running, b"z" * 3_000_000)["size"] == 3_000_000
        refused = running.refused("POST", "/api/message", {"message": "z" * 2000})
        assert refused == (413, "body_too_large")


def test_the_list_has_the_newest_first_and_pages(served: Served, files: Path) -> None:
    names = [uploaded(served, b"x" * n)["name"] for n in range(1, 4)]
    for at, name in enumerate(names):
        os.utime(files / name, ns=(0, (2_000_000_000 + at) * 10**9))  # after all others
    newest = served.get("/api/files?limit=2")
    assert [(each["name"], each["size"]) for each in newest] == [(names[2], 3), (names[1], 2)]
    assert newest[0]["created_at"] == 2_000_000_002_000
    response = served.ask("GET", f"/api/files?since_id={newest[0]['id'] - 2_000_001}&limit=1")
    assert [each["name"] for each in response.json()] == [names[0]]
    since = response.headers["X-Next-Cursor"]
    rest = served.get(f"/api/files?since_id={since}")
    assert [each["name"] for each in rest] == names[1:]


def test_links_and_hidden_files_are_not_there(served: Served, files: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (files / "link").symlink_to(secret)
    (files / "inner").symlink_to(files / uploaded(served)["name"])
    (files / ".hidden").write_text("hidden")
    (files / "directory").mkdir()
    os.mkfifo(files / "pipe")
    listed = {each["name"] for each in served.get("/api/files?limit=500")}
    for name in ("link", "inner", ".hidden", "directory", "pipe", ".uploads"):
        assert name not in listed
        for method in ("GET", "DELETE"):
            assert served.refused(method, f"/api/files/{name}") == (404, "unknown_file"), name
    assert secret.read_text() == "secret"


@pytest.mark.parametrize(
    "name",
    [
        *("..%2ftoken", "%2e%2e%2ftoken", "..", "%2e%2e", ".", "%00", "a%00b", "%2fetc%2fpasswd"),
        *("..%5ctoken", "nothing", "%F0%9F", "x" * 300, "file_%2e%2e/../token", "....//token"),
    ],
)
def test_no_name_leads_out_of_the_directory(served: Served, name: str) -> None:
    # Without the library's own tidying of the path.
    for method in ("GET", "DELETE"):
        asked = requests.Request(method, served.url).prepare()
        asked.url = f"{served.url}/api/files/{name}"
        asked.headers["Authorization"] = f"Bearer {served.token}"
        response = served.session.send(asked, timeout=60)
        assert response.status_code in (404, 405), name
        assert served.token not in response.text


def test_a_removed_file_is_gone(served: Served, files: Path) -> None:
    name = uploaded(served)["name"]
    assert served.ok("DELETE", f"/api/files/{name}") == {"ok": True}
    assert not (files / name).exists()
    assert served.refused("GET", f"/api/files/{name}") == (404, "unknown_file")
    assert served.refused("DELETE", f"/api/files/{name}") == (404, "unknown_file")
    assert served.get("/api/audit?limit=1")[0]["action"] == "files remove"


def test_who_may_what(served: Served) -> None:
    name = uploaded(served)["name"]
    small, out = (403, "scope_too_small"), (403, "out_of_reach")
    reader, writer = served.key(Scope.READ), served.key(Scope.PUBLISH)
    limited = served.key(Scope.ADMIN, agents=("worker",))
    assert upload(served, token=reader).status_code == 403
    assert upload(served, token=writer).status_code == 200
    assert upload(served, token=limited).status_code == 200
    assert upload(served, token="").status_code == 401
    assert served.refused("GET", f"/api/files/{name}", token=writer) == small
    assert served.refused("DELETE", f"/api/files/{name}", token=reader) == small
    for method, path in (("GET", ""), ("GET", f"/{name}"), ("DELETE", f"/{name}")):
        assert served.refused(method, f"/api/files{path}", token=limited) == out


def test_many_at_once_are_all_kept(served: Served) -> None:
    datas = [bytes([n]) * 50_000 for n in range(16)]
    token = served.token

    def send(data: bytes) -> str:
        with requests.Session() as session:
            response = session.post(
                f"{served.url}/api/files",
                files={"file": ("same.bin", data)},
                headers={"Authorization": f"Bearer {token}"},
                timeout=60,
            )
        assert response.status_code == 200, response.text
        return str(response.json()["name"])

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(send, datas))
    assert len(set(names)) == len(datas)
    for name, data in zip(names, datas, strict=True):
        assert served.ask("GET", f"/api/files/{name}").content == data


def test_a_sender_that_hangs_up_leaves_nothing(served: Served, files: Path) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    begun = threading.Event()

    def parts() -> Iterator[bytes]:
        yield head + b"y" * 70_000
        begun.set()
        raise KeyError("hung up")

    with pytest.raises(KeyError):
        raw(served, parts())  # type: ignore[arg-type]
    assert begun.is_set()
    until_nothing_is_left(files)


def until_nothing_is_left(files: Path) -> None:
    """What was begun is forgotten soon."""
    waited = threading.Event()
    for _ in range(900):
        if not left_over(files):
            return
        waited.wait(0.1)
    raise AssertionError(left_over(files))


def test_a_full_disk_is_told_and_keeps_nothing_half_done(stores: Stores) -> None:
    settings: Settings = stores.settings("sqlite")
    with serving(settings) as running:
        uploaded(running)
        before = shown(settings.files)
        for worker in running.workers:
            _, hard = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (1 << 20, hard))
        response = upload(running, b"z" * (3 << 20))
        assert (response.status_code, response.json()["code"]) == (503, "store_full")
        assert shown(settings.files) == before
        assert left_over(settings.files) == []
        assert upload(running, b"small").status_code == 200


def test_a_directory_that_may_not_be_written_is_told(stores: Stores) -> None:
    settings: Settings = stores.settings("sqlite")
    with serving(settings) as running:
        settings.files.write_text("no directory")  # rights do not bind everybody
        response = upload(running)
        assert response.status_code == 503
        assert "files" in response.json()["hint"]
        assert running.refused("GET", "/api/files")[0] == 503
