"""The HTTP service of some models; its description is at /openapi.json."""

import html
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from rspmn import __version__
from rspmn.display import shortened
from rspmn.errors import RspmnError
from rspmn.serve import questions
from rspmn.serve.answering import Answering, Desk, Loaded, Served
from rspmn.serve.protection import App, Protected
from rspmn.serve.questions import AboutState, AboutWorth, Batch, Simulation

#: The most characters of an error.
LONGEST = 300

Q = TypeVar("Q")
Facts = dict[str, Any]

DESCRIPTION = (
    "Decisions of recurrent sum-product-max networks. A state is an object of values by variable; "
    'null is the start of an episode. Errors are {"error": text}.'
)


@dataclass(frozen=True)
class Limits:
    """What a request may take."""

    bytes: int = 8_000_000  # of a body
    seconds: float = 5.0  # for what to do
    slow_seconds: float = 60.0  # for why, simulations, the page


def make_app(
    served: Sequence[Served],
    *,
    token: str | None = None,
    hosts: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> App:
    """Return the service as an ASGI application; models that cannot be read raise an error.

    Parameters
    ----------
    served
        The models, with different names.
    token
        What requests must bring; None if nothing is asked for.
    hosts
        The names under which it may be asked; None for any.
    limits
        What a request may take.
    """
    limits = limits or Limits()
    names = [each.name for each in served]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RspmnError(f"two models have the name {twice!r}: give other names, NAME=FILE")
    models = {each.name: Answering(each) for each in served}
    app = FastAPI(
        title="rspmn", version=__version__, description=DESCRIPTION, docs_url=None,
        redoc_url=None, lifespan=_closing(models),
    )  # fmt: skip
    _add_errors(app)
    _add_models(app, models, limits)
    _add_questions(app, models, limits)
    return Protected(app, token, hosts, limits.bytes)


def _closing(models: dict[str, Answering]) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for model in models.values():
            model.close()

    return lifespan


def _error(text: str, status: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": shortened(text, LONGEST)}, status, headers)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RspmnError)
    async def refused(_: Request, error: Exception) -> JSONResponse:
        return _error(str(error), 422)

    @app.exception_handler(RequestValidationError)
    async def misread(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        if "json" not in request.headers.get("content-type", ""):
            return _error("expected a header Content-Type: application/json", 422)
        first = error.errors()[0]
        where = shortened(".".join(map(str, first["loc"][1:])) or "body", LONGEST // 2)
        return _error(f"{where}: {first['msg']}", 422)

    @app.exception_handler(TimeoutError)
    async def late(_: Request, __: Exception) -> JSONResponse:
        return _error("the question takes longer than is allowed", 503)

    @app.exception_handler(StarletteHTTPException)  # those of FastAPI, and of unknown paths
    async def other(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, StarletteHTTPException)
        return _error(error.detail, error.status_code, error.headers)


def _find(models: dict[str, Answering], name: str) -> Answering:
    if name not in models:
        raise HTTPException(404, f"no model {name!r}: {', '.join(models)}")
    return models[name]


def _add_models(app: FastAPI, models: dict[str, Answering], limits: Limits) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def index(request: Request) -> str:
        query = f"?{request.url.query}" if request.url.query else ""
        addresses = {name: html.escape(f"/models/{quote(name)}{query}") for name in models}
        links = "".join(
            f'<li><a href="{address}">{html.escape(name)}</a></li>'
            for name, address in addresses.items()
        )
        return f'<!doctype html><html lang="en"><title>rspmn</title><h1>Models</h1><ul>{links}</ul>'

    @app.get("/models")
    async def list_models() -> list[Facts]:
        """Return the served models."""
        return [model.info for model in models.values()]

    @app.get("/models/{name}", response_class=HTMLResponse)
    async def page(name: str) -> str:
        """Return the page of a model."""
        return await _find(models, name).slow.ask(lambda found: found.page, limits.slow_seconds)

    @app.get("/models/{name}/info")
    async def info(name: str) -> Facts:
        """Return a description of a model."""
        return _find(models, name).info

    @app.post("/models/{name}/reload")
    async def reload(name: str) -> Facts:
        """Read the file of a model again; the old model is used until it has been read."""
        model = _find(models, name)
        await model.reload()
        return model.info


def _add_questions(app: FastAPI, models: dict[str, Answering], limits: Limits) -> None:
    async def quick(name: str, answer: Callable[[Q, Loaded], Facts], asked: Q) -> JSONResponse:
        return await said(_find(models, name).quick, answer, asked, limits.seconds)

    async def slow(name: str, answer: Callable[[Q, Loaded], Facts], asked: Q) -> JSONResponse:
        return await said(_find(models, name).slow, answer, asked, limits.slow_seconds)

    async def said(
        desk: Desk, answer: Callable[[Q, Loaded], Facts], asked: Q, seconds: float
    ) -> JSONResponse:
        return JSONResponse(await desk.ask(lambda found: answer(asked, found), seconds))

    @app.post("/models/{name}/act")
    async def act(name: str, asked: AboutState) -> JSONResponse:
        """Return the best decision in a state: {"decided": {decision: value}}."""
        return await quick(name, questions.act, asked)

    @app.post("/models/{name}/action_values")
    async def action_values(name: str, asked: AboutState) -> JSONResponse:
        """Return the value of every action: {"actions": [...]}."""
        return await quick(name, questions.action_values, asked)

    @app.post("/models/{name}/batch")
    async def batch(name: str, asked: Batch) -> JSONResponse:
        """Return the best decisions in many states, as columns; null where none is known."""
        return await quick(name, questions.batch, asked)

    @app.post("/models/{name}/meu")
    async def meu(name: str, asked: AboutWorth) -> JSONResponse:
        """Return the maximum expected utility of a state."""
        return await slow(name, questions.meu, asked)

    @app.post("/models/{name}/explain")
    async def explain(name: str, asked: AboutState) -> JSONResponse:
        """Return an explanation of the decision in a state."""
        return await slow(name, questions.explain, asked)

    @app.post("/models/{name}/simulate")
    async def simulate(name: str, asked: Simulation) -> JSONResponse:
        """Return simulated episodes, as columns of a long table."""
        return await slow(name, questions.simulate, asked)
