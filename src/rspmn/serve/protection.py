"""What keeps a server safe: a token, the names that it answers to, limits on what is sent."""

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Names of this machine. A page of another site that has a name of its own for it is refused.
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


class TooLargeError(Exception):
    """A body is larger than is accepted."""


class Protected:
    """An application behind checks of the token, the host and the size of bodies.

    Parameters
    ----------
    app
        The application.
    token
        What requests must bring, as `Authorization: Bearer …`, or as `?token=…` for pages; None if
        nothing is asked for.
    hosts
        The names under which it may be asked; None for any.
    most_bytes
        The largest body.
    """

    def __init__(
        self, app: App, token: str | None, hosts: Sequence[str] | None, most_bytes: int
    ) -> None:
        self.app, self.token, self.hosts, self.most_bytes = app, token, hosts, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1")
                   for name, value in scope["headers"]}  # fmt: skip
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        await self._answer_small(scope, receive, send)

    async def _answer_small(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request unless its body, which may come in pieces, is too large."""
        size = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.most_bytes:
                raise TooLargeError
            return message

        async def sent(message: MutableMapping[str, Any]) -> None:
            if size <= self.most_bytes:
                await send(message)
            elif message["type"] == "http.response.start":  # the application says something else
                await _answer(send, 413, self._too_large())

        try:
            await self.app(scope, counted, sent)
        except TooLargeError:
            await _answer(send, 413, self._too_large())

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if self.hosts is not None and _host(headers.get("host", "")) not in self.hosts:
            return 421, f"this server does not answer to the name {headers.get('host', '')!r}"
        if self.token is not None and not self._is_allowed(scope, headers):
            return 401, "expected a token: Authorization: Bearer TOKEN, or ?token=TOKEN for a page"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.most_bytes:
            return 413, self._too_large()
        return None

    def _is_allowed(self, scope: Scope, headers: dict[str, str]) -> bool:
        assert self.token is not None
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not given and scope["method"] == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _too_large(self) -> str:
        return f"a body may have {self.most_bytes} bytes: send fewer states at a time"


def _host(header: str) -> str:
    """Return a host without its port.

    >>> _host("localhost:8000"), _host("[::1]:8000"), _host("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, _, port = header.rpartition(":")
    return name if port.isdigit() and name else header


async def _answer(send: Send, status: int, error: str) -> None:
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
