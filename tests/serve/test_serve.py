"""The HTTP service: the answers of policies, refused requests, models replaced while it runs."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs rspmn[serve]")

import uvicorn

from reproductions.single_shot import oil_wildcatter
from rspmn.cli import main
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.errors import RspmnError
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn, learn_spmn
from rspmn.model_file import load_rspmn
from rspmn.serve import LOOPBACK, Limits, Served, make_app
from rspmn.serve.answering import Answering
from rspmn.serve.worker import Worker
from rspmn.values import plain

HORIZON = 8


class Answer:
    """What a server answers."""

    def __init__(self, found: HTTPResponse) -> None:
        self.status_code, self.headers = found.status, found.headers
        self.text = found.read().decode()

    def json(self) -> Any:
        return json.loads(self.text)


class Client:
    """Asks a server that runs in a thread."""

    def __init__(self, app: Any) -> None:
        settings = uvicorn.Config(app, port=0, log_level="error", lifespan="on")
        self.server = uvicorn.Server(settings)
        self.thread = Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> "Client":
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(
        self,
        path: str,
        json_: Any = None,
        content: Iterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        body = json.dumps(json_) if content is None else content
        return self._ask("POST", path, body, headers or {})

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
        line = HTTPConnection("127.0.0.1", self.port, timeout=30)
        line.request(method, path, body, {"Content-Type": "application/json", **headers})
        found = Answer(line.getresponse())
        line.close()
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served")
    learn_rspmn(frozen_lake().generate(400, HORIZON, 0))[0].save(path / "lake.json")
    learn_rspmn(frozen_lake().generate(40, HORIZON, 1))[0].save(path / "other.json")
    problem = oil_wildcatter()
    learn_spmn(problem.sample(500, 0), problem.schema)[0].save(path / "oil.json")
    return path


@pytest.fixture(scope="module")
def policy(folder: Path) -> Policy:
    return load_rspmn(folder / "lake.json").policy(HORIZON)


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    models = [Served("lake", folder / "lake.json", HORIZON), Served("oil", folder / "oil.json")]
    with Client(make_app(models)) as found:
        yield found


def post(client: Client, path: str, **body: Any) -> Any:
    found = client.post(f"/models/{path}", json_=body)
    assert found.status_code == 200, found.text
    return found.json()


def test_answers_are_those_of_the_policy(client: Client, policy: Policy) -> None:
    for cell in (0, 4, 14):
        state = {"cell": cell}
        found = post(client, "lake/act", state=state, t=2)
        assert found == {"decided": {"action": policy.act(state, 2)}}
        actions = post(client, "lake/action_values", state=state)["actions"]
        expected = policy.action_values(state)
        assert [each["utility"] for each in actions] == plain([e.utility for e in expected])
        assert post(client, "lake/explain", state=state) == policy.explain(state).to_dict()
    assert post(client, "lake/meu")["meu"] == policy.value()
    assert post(client, "lake/meu", horizon=3)["meu"] == policy.model.meu(None, 3)
    assert post(client, "lake/act") == {"decided": {"action": policy.act(None)}}


def test_batches(client: Client, policy: Policy) -> None:
    cells = [0, 1, 14, 99, None]
    made = post(client, "lake/batch", columns={"cell": cells})["decided"]["action"]
    assert made[:3] == policy.act_many({"cell": cells[:3]}).tolist()
    assert made[3] is None  # never logged
    assert made[4] == policy.act({})
    assert post(client, "lake/batch", states=[])["decided"]["action"] == []
    states = [{"cell": cell} for cell in cells[:4]]
    assert post(client, "lake/batch", states=states)["decided"]["action"] == made[:4]


def test_several_decisions_in_a_step(client: Client) -> None:
    assert set(post(client, "oil/act")["decided"]) == {"test"}
    found = post(client, "oil/act", state={"test": "yes", "result": "open"})
    assert set(found["decided"]) == {"drill"}
    assert len(post(client, "oil/simulate", episodes=5)["columns"]["profit"]) == 5


@pytest.mark.parametrize("who", ["recommended", "practice", "uniform"])
def test_simulations(client: Client, policy: Policy, who: str) -> None:
    asked = {"episodes": 30, "horizon": 5, "seed": 3, "policy": who}
    found = post(client, "lake/simulate", **asked)["columns"]
    assert len(set(found["episode"])) == 30
    assert found == post(client, "lake/simulate", **asked)["columns"]
    if who == "recommended":
        best = policy.model.policy(5)
        rows = zip(found["cell"], found["time"], found["action"], strict=True)
        assert all(a == best.act({"cell": c}, t) for c, t, a in rows if a is not None)


def test_pages_and_descriptions(client: Client) -> None:
    assert "/models/lake" in client.get("/").text
    page = client.get("/models/lake")
    assert page.headers["content-type"].startswith("text/html")
    assert "connect-src 'self'" in page.text
    assert {each["name"] for each in client.get("/models").json()} == {"lake", "oil"}
    paths = client.get("/openapi.json").json()["paths"]
    for question in ("act", "action_values", "explain", "meu", "simulate", "batch"):
        assert f"/models/{{name}}/{question}" in paths


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("lake/act", {"state": {"cel": 1}}, 422, "cel"),
        ("lake/act", {"state": {"cell": 99}}, 422, "no decision is known"),
        ("lake/act", {"stat": {}}, 422, "stat"),
        ("lake/act", {"t": HORIZON}, 422, "expected 0 to 7"),
        ("lake/simulate", {"episodes": 10**9}, 422, "episodes"),
        ("lake/simulate", {"episodes": 10_000, "horizon": 10_000}, 422, "at most 100000 steps"),
        ("lake/batch", {"states": [{"cell": 1}, {"zell": 1}]}, 422, "unknown variable 'zell'"),
        ("lake/batch", {"states": [], "columns": {}}, 422, "found both"),
        ("lake/batch", {"columns": {"cell": [1] * 100_001}}, 422, "at most 100000 items"),
        ("lake/batch", {"states": [{}] * 100_001}, 422, "at most 100000 items"),
        ("lake/act", {"state": {"cell": "0"}}, 422, "its values are numbers, found '0'"),
        ("lake/nothing", {}, 404, "Not Found"),
        (f"{'x' * 100_000}/act", {}, 404, "no model 'xxx"),
        ("lake/act", {"x" * 100_000: 1}, 422, "Extra inputs"),
        ("sea/act", {}, 404, "lake, oil"),
    ],
)
def test_what_is_refused(
    client: Client, path: str, body: dict[str, Any], status: int, said: str
) -> None:
    found = client.post(f"/models/{path}", json_=body)
    assert found.status_code == status
    assert said in found.json()["error"]
    assert len(found.json()["error"]) <= 300


def test_a_token(folder: Path) -> None:
    app = make_app([Served("lake", folder / "lake.json", HORIZON)], token="secret")
    with Client(app) as client:
        assert client.get("/models").status_code == 401
        assert client.get("/models?token=secret").status_code == 200
        assert client.post("/models/lake/act?token=secret", json_={}).status_code == 401
        for given, status in (("secret", 200), ("secre", 401), ("", 401)):
            headers = {"Authorization": f"Bearer {given}"}
            assert client.post("/models/lake/act", json_={}, headers=headers).status_code == status


def test_other_names_and_large_bodies(folder: Path) -> None:
    served = [Served("lake", folder / "lake.json", HORIZON)]
    app = make_app(served, hosts=LOOPBACK, limits=Limits(bytes=1000))
    with Client(app) as client:
        assert client.get("/models", Host="evil.example:8000").status_code == 421
        assert client.get("/models").status_code == 200
        large = {"columns": {"cell": [0] * 1000}}
        assert client.post("/models/lake/batch", json_=large).status_code == 413

        def pieces() -> Iterator[bytes]:
            for _ in range(20):
                yield b" " * 100

        found = client.post("/models/lake/batch", content=pieces())
        assert found.status_code == 413


def test_late_answers(folder: Path) -> None:
    over = Event()

    async def ask() -> None:
        model = Answering(Served("lake", folder / "lake.json", HORIZON))
        with pytest.raises(TimeoutError):
            await model.slow.ask(lambda _: over.wait(60), 0.01)
        quick = await model.quick.ask(lambda found: found.policy.act({"cell": 0}), 60)
        assert quick
        assert not over.is_set()  # it did not wait for the slow one
        over.set()
        model.close()

    asyncio.run(ask())


def test_a_model_is_replaced_without_a_gap(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    shutil.copy(folder / "lake.json", path)
    with Client(make_app([Served("m", path, HORIZON)])) as client:
        first = client.get("/models/m/info").json()["sha256"]
        shutil.copy(folder / "other.json", path)
        assert client.get("/models/m/info").json()["sha256"] == first
        second = client.post("/models/m/reload").json()["sha256"]
        assert second != first
        expected = load_rspmn(path).policy(HORIZON).explain({"cell": 0}).to_dict()
        assert post(client, "m/explain", state={"cell": 0}) == expected
        path.write_text("{}")
        assert client.post("/models/m/reload").status_code == 422
        assert client.get("/models/m/info").json()["sha256"] == second
        assert post(client, "m/act", state={"cell": 0})


def test_two_models_of_one_name(folder: Path) -> None:
    with pytest.raises(RspmnError, match="two models have the name 'x'"):
        make_app([Served("x", folder / "lake.json"), Served("x", folder / "oil.json")])


def test_calls_are_made_one_after_the_other_and_do_not_keep_python_alive() -> None:
    worker, made = Worker(), list[int]()
    calls = [worker.submit(partial(made.append, k)) for k in range(5)]
    assert [call.result(5) for call in calls] == [None] * 5
    assert made == [0, 1, 2, 3, 4]
    failed = worker.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result(5)
    worker.close()
    script = "import time; from rspmn.serve.worker import Worker; w = Worker(); "
    script += "w.submit(lambda: time.sleep(60)); time.sleep(0.2)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_a_pipe_is_no_model(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "lake.json", tmp_path / "lake.json")
    with Client(make_app([Served("lake", tmp_path / "lake.json", HORIZON)])) as client:
        (tmp_path / "lake.json").unlink()
        os.mkfifo(tmp_path / "lake.json")
        found = client.post("/models/lake/reload")
        assert found.status_code == 422
        assert "expected a file" in found.json()["error"]
        assert client.post("/models/lake/act", json_={}).status_code == 200


def serving(folder: Path, *words: str) -> tuple["subprocess.Popen[str]", int]:
    """Start the command; return it and the port that it says."""
    running = subprocess.Popen(
        [sys.executable, "-m", "rspmn", "serve", str(folder / "lake.json"), "--port", "0", *words],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdout is not None
    port = re.search(r":(\d+)/", running.stdout.readline())
    assert port is not None
    return running, int(port[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_a_request_is_open(folder: Path, number: int) -> None:
    running, port = serving(folder)
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"POST /models/lake/act HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{")  # fmt: skip
        time.sleep(0.3)
        running.send_signal(number)
        _, told = running.communicate(timeout=20)
    if number == signal.SIGINT:
        assert running.returncode == 130
        assert told == "rspmn: interrupted; no file was left incomplete\n"
    else:
        assert running.returncode == -signal.SIGTERM
        assert told == ""


def test_an_address_that_cannot_be_had(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(folder / "lake.json"), "--port", port]) == 2
    out, told = capsys.readouterr()
    assert out == ""
    assert told == f"rspmn: cannot listen at 127.0.0.1, port {port}: Address already in use\n"
