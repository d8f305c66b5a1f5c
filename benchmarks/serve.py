"""Decisions a second over HTTP, in batches and one by one, and how long single ones take.

    python benchmarks/serve.py

A model of 400 interface nodes (Taxi) is served by one process on one core, and asked by another.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import socket
import tempfile
import time
from pathlib import Path

import numpy as np


def main() -> None:
    """Serve a model, ask it, print figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="states of a batch")
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--singles", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=3000, help="of the log to learn from")
    arguments = parser.parse_args()
    from rspmn.envs.taxi import taxi
    from rspmn.learn import learn_rspmn

    world = taxi()
    model, _ = learn_rspmn(world.generate(arguments.episodes, 50, 0))
    table = model.policy(50).table()
    names = model.schema.information_sets[0]
    states = [{name: table[name][k] for name in names} for k in range(len(table["node"]))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "taxi.json"
        model.save(path)
        port = free_port()
        server = multiprocessing.get_context("spawn").Process(target=_serve, args=(path, port))
        server.start()
        try:
            _ask(port, states, arguments)
        finally:
            server.terminate()
            server.join()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _serve(path: Path, port: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # one core
    import uvicorn

    from rspmn.serve import Served, make_app

    app = make_app([Served("taxi", path, 50)])
    uvicorn.run(app, port=port, log_level="error", access_log=False)


def _ask(port: int, states: list[dict[str, int]], arguments: argparse.Namespace) -> None:
    line = connected(port)
    rng = np.random.default_rng(0)
    drawn = [states[k] for k in rng.integers(0, len(states), arguments.rows)]
    columns = {name: [state[name] for state in drawn] for name in drawn[0]}
    for form, body in (("columns", {"columns": columns}), ("states", {"states": drawn})):
        _post(line, "batch", body)
        began = time.perf_counter()
        for _ in range(arguments.batches):
            _post(line, "batch", body)
        seconds = time.perf_counter() - began
        count = arguments.batches * arguments.rows
        print(f"batches of {arguments.rows} as {form}: {count / seconds:,.0f} decisions a second")
    waited = []
    for k in range(arguments.singles):
        began = time.perf_counter()
        _post(line, "act", {"state": states[k % len(states)]})
        waited.append(1000 * (time.perf_counter() - began))
    middle, last = np.quantile(waited, [0.5, 0.99])
    each = 1000 * len(waited) / sum(waited)
    print(f"one by one: {each:,.0f} decisions a second, median {middle:.2f} ms, p99 {last:.2f} ms")


def connected(port: int) -> http.client.HTTPConnection:
    """Return a connection to a server, once it answers."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(600):
        try:
            line.request("GET", "/models")
            line.getresponse().read()
        except OSError:
            line.close()
            time.sleep(0.1)
        else:
            return line
    raise SystemExit("the server did not start")


def _post(line: http.client.HTTPConnection, question: str, body: object) -> object:
    line.request("POST", f"/models/taxi/{question}", json.dumps(body),
                 {"Content-Type": "application/json"})  # fmt: skip
    found = line.getresponse()
    text = found.read()
    assert found.status == 200, text
    return json.loads(text)


if __name__ == "__main__":
    main()
