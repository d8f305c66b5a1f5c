"""The command that serves models over HTTP."""

import secrets
from pathlib import Path

from rspmn.cli.framework import Arguments
from rspmn.errors import RspmnError


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
    if not arguments.quiet:
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        query = "" if token is None else f"?token={token}"
        print(f"serving {', '.join(each.name for each in models)} at "
              f"http://{host}:{arguments.port}/{query}", flush=True)  # fmt: skip
        print("API description: /openapi.json; press Ctrl-C to stop", flush=True)
    config = uvicorn.Config(
        app, host=arguments.host, port=arguments.port, log_level="warning", access_log=False
    )
    uvicorn.Server(config).run()  # `uvicorn.run` would not tell of Ctrl-C


def named(word: str) -> tuple[str, Path]:
    """Return the name and the file of a model: NAME=FILE, or a file that has a name.

    >>> named("models/lake.json.gz")[0], named("best=models/lake.json")[0]
    ('lake', 'best')
    """
    name, equals, path = word.partition("=")
    if equals and name and "/" not in name:
        return name, Path(path)
    return Path(word).name.removesuffix(".gz").removesuffix(".json"), Path(word)
