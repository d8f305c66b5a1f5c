"""The command that serves models over HTTP."""

import asyncio
import logging
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from rspmn.cli.framework import Arguments
from rspmn.errors import RspmnError

if TYPE_CHECKING:
    import uvicorn

#: The seconds that open requests have when the server is told to end.
GRACE = 0.2


def serve(arguments: Arguments) -> None:
    """Answer questions about models over HTTP until it is interrupted."""
    try:
        import uvicorn

        from rspmn.serve import LOOPBACK, Limits, Served, make_app
    except ModuleNotFoundError as error:
        raise RspmnError(f"rspmn serve needs {error.name}: pip install 'rspmn[serve]'") from None
    models = [
        Served(*named(word), arguments.horizon, arguments.discount) for word in arguments.models
    ]
    own = arguments.host in LOOPBACK
    token = arguments.token or (None if own else secrets.token_urlsafe(24))
    limits = Limits(arguments.max_bytes, arguments.max_seconds)
    app = make_app(models, token=token, hosts=LOOPBACK if own else None, limits=limits)
    with _listening(arguments.host, arguments.port) as open_socket:
        if not arguments.quiet:
            host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
            query = "" if token is None else f"?token={token}"
            print(f"serving {', '.join(each.name for each in models)} at "
                  f"http://{host}:{open_socket.getsockname()[1]}/{query}", flush=True)  # fmt: skip
            print("API description: /openapi.json; press Ctrl-C to stop", flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        _server(config).run([open_socket])  # `uvicorn.run` would not tell of Ctrl-C


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        raise RspmnError(f"cannot listen at {host}, port {port}: {why}") from None


def _server(config: "uvicorn.Config") -> "uvicorn.Server":
    """Return a server that ends soon after it is told to, whatever clients do."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            asyncio.get_running_loop().call_later(GRACE, self._abort)
            await super().shutdown(sockets)
            # what is still open is cancelled now, which is no error
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

        def _abort(self) -> None:
            self.force_exit = True
            for connection in [*self.server_state.connections]:  # else they are waited for
                if (transport := getattr(connection, "transport", None)) is not None:
                    transport.abort()

    return Server(config)


def named(word: str) -> tuple[str, Path]:
    """Return the name and the file of a model: NAME=FILE, or a file that has a name.

    >>> named("models/lake.json.gz")[0], named("best=models/lake.json")[0]
    ('lake', 'best')
    """
    name, equals, path = word.partition("=")
    if equals and name and "/" not in name:
        return name, Path(path)
    return Path(word).name.removesuffix(".gz").removesuffix(".json"), Path(word)
