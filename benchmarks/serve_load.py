"""A served model under load: right answers, refusals, reloads, slow clients, and its memory.

    python benchmarks/serve_load.py --requests 100000

Clients ask as fast as they are answered: most what to do, some for batches, some with bodies that
are no JSON, of the wrong form or too large; one reloads the model again and again, and some send
their requests byte by byte and never finish. Every answer is compared with that of the policy.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from serve import connected, free_port

MOST_BYTES = 100_000
#: Of each kind of request, how often it is made, and what is answered.
MIX = {"act": (80, 200), "batch": (10, 200), "no JSON": (3, 422), "wrong form": (3, 422),
       "unseen": (2, 422), "too large": (1, 413), "no model": (1, 404)}  # fmt: skip


def main() -> None:
    """Serve a model, load it, print figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--slow", type=int, default=20, help="clients that never finish a request")
    arguments = parser.parse_args()
    from rspmn.envs.frozen_lake import frozen_lake
    from rspmn.learn import learn_rspmn

    model, _ = learn_rspmn(frozen_lake().generate(2000, 8, 0))
    policy = model.policy(8, otherwise="unseen")
    expected = {cell: policy.act({"cell": cell}) for cell in range(16)}
    with tempfile.TemporaryDirectory() as folder:
        path, port = Path(folder) / "lake.json", free_port()
        model.save(path)
        server = multiprocessing.get_context("spawn").Process(target=_serve, args=(path, port))
        server.start()
        try:
            _load(port, server.pid or 0, expected, arguments)
        finally:
            server.terminate()
            server.join()


def _serve(path: Path, port: int) -> None:
    import uvicorn

    from rspmn.serve import Limits, Served, make_app

    app = make_app([Served("lake", path, 8)], limits=Limits(bytes=MOST_BYTES))
    uvicorn.run(app, port=port, log_level="error", access_log=False)


def _load(port: int, pid: int, expected: dict[int, str], arguments: argparse.Namespace) -> None:
    connected(port).close()
    found: Counter[str] = Counter()
    finished = threading.Event()
    each = arguments.requests // arguments.clients
    slow = [_slow_client(port) for _ in range(arguments.slow)]
    clients = [threading.Thread(target=_client, args=(port, each, seed, expected, found))
               for seed in range(arguments.clients)]  # fmt: skip
    reloading = threading.Thread(target=_reload, args=(port, finished, found))
    began, memory = time.perf_counter(), [_memory(pid)]
    for thread in (*clients, reloading):
        thread.start()
    while any(client.is_alive() for client in clients):
        time.sleep(0.5)
        memory.append(_memory(pid))
    seconds = time.perf_counter() - began
    finished.set()
    reloading.join()
    for line in slow:
        line.close()
    wrong = {kind: count for kind, count in found.items() if kind.startswith("wrong answer")}
    early, late = memory[len(memory) // 4], memory[-1]
    print(f"{sum(found.values()):,} requests in {seconds:.0f} s, {arguments.clients} clients, "
          f"{arguments.slow} slow ones: {dict(found)}")  # fmt: skip
    print(f"wrong answers: {sum(wrong.values())}")
    print(
        f"memory: {memory[0]:.0f} MB at first, {early:.0f} MB after a quarter, {late:.0f} MB last"
    )
    if wrong:
        raise SystemExit(1)


def _client(
    port: int, requests: int, seed: int, expected: dict[int, str], found: Counter[str]
) -> None:
    """Ask, and count what is answered by kind."""
    rng, line = random.Random(seed), http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    kinds, weights = list(MIX), [weight for weight, _ in MIX.values()]
    for kind in rng.choices(kinds, weights, k=requests):
        cells = [rng.choice([0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14]) for _ in range(20)]
        question, body = _request(kind, cells)
        line.request("POST", question, body, {"Content-Type": "application/json"})
        answer = line.getresponse()
        text = answer.read()
        right = answer.status == MIX[kind][1] and _is_right(kind, text, cells, expected)
        found[kind if right else f"wrong answer to {kind}: {answer.status} {text[:80]!r}"] += 1
        if answer.getheader("connection") == "close":
            line.close()
    line.close()


def _request(kind: str, cells: list[int]) -> tuple[str, str]:
    body: Any = {"state": {"cell": cells[0]}}
    if kind == "batch":
        return "/models/lake/batch", json.dumps({"columns": {"cell": cells}})
    if kind == "no JSON":
        return "/models/lake/act", '{"state": {"cell": '
    if kind == "wrong form":
        body = {"state": [["cell", 3]], "t": "now"}
    if kind == "unseen":
        body = {"state": {"cell": 99}}
    if kind == "too large":
        body = {"state": {"cell": "x" * MOST_BYTES}}
    return f"/models/{'pond' if kind == 'no model' else 'lake'}/act", json.dumps(body)


def _is_right(kind: str, text: bytes, cells: list[int], expected: dict[int, str]) -> bool:
    answer = json.loads(text)
    if kind == "act":
        return bool(answer["decided"] == {"action": expected[cells[0]]})
    if kind == "batch":
        return bool(answer["decided"]["action"] == [expected[cell] for cell in cells])
    return list(answer) == ["error"]


def _slow_client(port: int) -> socket.socket:
    """Return a connection with a request that is never finished."""
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(
        b"POST /models/lake/act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"
    )
    return line


def _reload(port: int, finished: threading.Event, found: Counter[str]) -> None:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not finished.wait(0.2):
        line.request("POST", "/models/lake/reload")
        answer = line.getresponse()
        answer.read()
        found["reload" if answer.status == 200 else "wrong answer to reload"] += 1


def _memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
