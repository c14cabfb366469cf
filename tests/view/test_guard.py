"""Who is answered: the token, the cookie, Host, Origin; what answers say to the browser."""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from streamtok.view import web_server

from .page_server import TOKEN, served


def stranger(url: str) -> httpx.Client:
    return httpx.Client(base_url=url.partition("?")[0], trust_env=False, timeout=60)


def test_the_token_becomes_a_cookie(url: str) -> None:
    with stranger(url) as client:
        response = client.get(url)
        assert response.status_code == 200
        cookie = response.headers["set-cookie"]
        assert cookie.startswith("streamtok_")
        for word in ("HttpOnly", "SameSite=Strict", "Path=/;"):
            assert word in cookie
        again = client.get("api/about")
        assert again.status_code == 200
        assert "set-cookie" not in again.headers


def test_a_client_that_sends_no_request_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEAD_TIMEOUT", 0.3)
    with served() as url:
        where = urlsplit(url)
        whole = f"GET / HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode()
        for begin in (b"", b"GET / HT", whole, whole + b"GET /"):
            with socket.create_connection((where.hostname, where.port), timeout=60) as silent:
                silent.sendall(begin)
                received = b""
                with contextlib.suppress(ConnectionResetError):
                    while part := silent.recv(1 << 16):
                        received += part
                assert received.count(b"HTTP/1.1 403") == begin.count(b"Host")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"x: " + b"y" * 100_000, b"431"),
        (b"x: y\r\n" * 20_000, b"431"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"400"),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"400"),
        (b"Host: evil.example", b"400"),
    ],
)
def test_heads_that_uvicorn_takes(url: str, headers: bytes, status: bytes) -> None:
    """A long head is refused also if it arrives at once; two lengths or hosts are one too many."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=60) as link:
        link.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n")
        answer = link.makefile("rb").read()
    assert answer.split()[1] == status
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("path", ["", "main.js", "api/about"])
def test_without_a_token_there_is_nothing(url: str, path: str) -> None:
    with stranger(url) as client:
        for query in ("", "?token=", f"?token={TOKEN}x", f"?token={TOKEN[:-1]}", "?token=ö"):
            response = client.get(path + query)
            assert response.status_code == 403
            assert "open the URL that was printed" in response.text
            assert "set-cookie" not in response.headers
        assert client.get(f"{path}?token={TOKEN}&token={TOKEN}").status_code == 403
        assert client.get(f"{path}?token={TOKEN}").status_code == 200


def test_the_cookie_is_compared_as_a_whole(url: str, client: httpx.Client) -> None:
    (name,) = client.cookies.keys()
    with stranger(url) as other:
        for value in ("", "x", TOKEN + "x", "ä"):
            headers = {"Cookie": f"{name}={value}".encode()}
            assert other.get("api/about", headers=headers).status_code == 403
        headers = {"Cookie": f"a=b; {name}={TOKEN}"}
        assert other.get("api/about", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:1234"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "evil.example"}, 421),  # DNS rebinding
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "10.0.0.1"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "localhost:5", "Origin": "http://localhost:5"}, 200),
        ({"Host": "localhost:5", "Origin": "http://localhost:6"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ],
)
def test_other_sites_get_no_answer(
    client: httpx.Client, headers: dict[str, str], status: int
) -> None:
    question = {"encoding": "gpt2", "special": "plain", "text": "a", "at": 0}
    assert client.post("api/text", json=question, headers=headers).status_code == status
    for path in ("", "api/about"):
        assert client.get(path, headers=headers).status_code == status


def test_a_link_from_another_site_opens_the_page(url: str) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    with stranger(url) as client:
        assert client.get(url, headers=headers).status_code == 200
        assert client.post("api/text", json={}, headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE"])
def test_other_methods(client: httpx.Client, method: str) -> None:
    assert client.request(method, "api/about").status_code == 405


def test_every_answer_has_the_headers(url: str, client: httpx.Client) -> None:
    with stranger(url) as other:
        answers = [other.get("")]
    answers += [client.get(path) for path in ("", "main.js", "api/about", "nothing")]
    answers.append(client.post("api/text", content=b"x"))
    for response in answers:
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "no-store"
        assert "server" not in response.headers


@pytest.mark.parametrize(
    "path",
    [
        "a/../../app.py", "..%2fapp.py", "..%5capp.py", "/etc/passwd", "%2fetc%2fpasswd",
        "main.js%00.css", "../app.py",
    ],
)  # fmt: skip
def test_no_path_leads_out(url: str, client: httpx.Client, path: str) -> None:
    where = urlsplit(url)
    (cookie,) = client.cookies.items()
    with socket.create_connection((where.hostname, where.port), 60) as link:  # as it stands
        lines = [
            f"GET /{path} HTTP/1.1", f"Host: {where.netloc}", f"Cookie: {'='.join(cookie)}",
            "Connection: close", "", "",
        ]  # fmt: skip
        link.sendall("\r\n".join(lines).encode())
        answer = link.makefile("rb").read()
    assert answer.split()[1] in (b"404", b"400"), answer
    assert b"root:" not in answer
    assert b"import" not in answer


def test_no_script_and_no_style_stands_in_the_page(client: httpx.Client) -> None:
    import re

    page = client.get("").text
    assert "<style" not in page
    assert not re.search(r"\s(?:style|on\w+)\s*=", page)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))
    assert not re.search(r"https?://", page)
