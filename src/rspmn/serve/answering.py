"""A model that answers questions in a thread of its own, and is replaced without a gap."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from rspmn.errors import EvidenceError
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.model_file import load
from rspmn.serve.worker import Worker
from rspmn.spmn import SPMN

T = TypeVar("T")


@dataclass(frozen=True)
class Served:
    """Which model is served, and for which questions."""

    name: str
    path: Path
    horizon: int | None = None
    discount: float = 1.0


@dataclass(eq=False)
class Loaded:
    """A model that was read, with its policy. Only one thread at a time may ask it."""

    served: Served
    model: RSPMN | SPMN
    policy: Policy
    sha256: str
    #: Policies of other horizons that were asked for, the last few.
    _others: dict[int, Policy] = field(default_factory=dict)

    @classmethod
    def read(cls, served: Served) -> "Loaded":
        """Read a model from its file, and plan."""
        digest = hashlib.sha256(_content(served.path)).hexdigest()
        return cls.of(served, load(served.path), digest)

    @classmethod
    def of(cls, served: Served, model: RSPMN | SPMN, digest: str) -> "Loaded":
        """Plan for a model."""
        if isinstance(model, RSPMN):
            policy = model.policy(served.horizon, served.discount)
        elif served.horizon not in (None, 1) or served.discount != 1:
            raise EvidenceError(
                f"{served.path} is a model of single decisions: omit horizon and discount"
            )
        else:
            policy = model.policy()
        policy.act_many({name: [] for name in policy.index.names})  # what it needs is made now
        return cls(served, model, policy, digest)

    def copied(self) -> "Loaded":
        """Return the same model, without what its policy has found so far."""
        return self.of(self.served, replace(self.model), self.sha256)

    def over(self, horizon: int | None) -> Policy:
        """Return the policy over a number of steps; by default the one that is served."""
        if horizon is None or horizon == self.policy.horizon or not isinstance(self.model, RSPMN):
            return self.policy
        if horizon not in self._others:
            if len(self._others) >= 8:
                self._others.clear()
            self._others[horizon] = self.model.policy(horizon, self.served.discount)
        return self._others[horizon]

    @cached_property
    def page(self) -> str:
        """The page of the model, which may ask the server."""
        from rspmn.report import report_data, report_page

        horizon = self.policy.horizon if isinstance(self.model, RSPMN) else None
        data = report_data(
            self.model, None, horizon, self.served.discount, title=self.served.name,
            source=self.served.path,
        )  # fmt: skip
        return report_page({**data, "live": True}, live=True)


class Desk:
    """Answers questions about a model one after the other, in a thread."""

    def __init__(self, read: Callable[[], Loaded]) -> None:
        self._read = read  # what to ask; called when the first question comes
        self._found: Loaded | None = None
        self._worker = Worker()

    async def ask(self, question: Callable[[Loaded], T], seconds: float) -> T:
        """Return the answer to a question; `TimeoutError` if it takes longer.

        A question that is late goes on in its thread: Python cannot stop it. Those after it wait.
        """
        answer = asyncio.wrap_future(self._worker.submit(partial(self._answer, question)))
        found: T = await asyncio.wait_for(answer, seconds)
        return found

    def _answer(self, question: Callable[[Loaded], T]) -> T:
        if self._found is None:
            self._found = self._read()
        return question(self._found)

    def close(self) -> None:
        """Let the thread end when its questions are answered."""
        self._worker.close()


class Answering:
    """A model that is served: quick questions do not wait for slow ones.

    Quick ones (what to do) and slow ones (why, simulations, the page) each have a desk, with a copy
    of the model of its own, as a policy keeps what it has found. The second is made when it is
    first needed.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.info: dict[str, Any] = {}
        self._open(Loaded.read(served))

    def _open(self, found: Loaded) -> None:
        # Nothing awaits between these, so no question finds one of them old.
        self.quick, self.slow = Desk(lambda: found), Desk(found.copied)
        self.info = _info(found)

    async def reload(self) -> None:
        """Read the file again; until that is done, and if it fails, the old model answers."""
        worker = Worker()
        reading = worker.submit(partial(Loaded.read, self.served))
        worker.close()
        found: Loaded = await asyncio.wrap_future(reading)
        old = (self.quick, self.slow)
        self._open(found)
        for desk in old:
            desk.close()

    def close(self) -> None:
        """Let the threads end."""
        self.quick.close()
        self.slow.close()


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise EvidenceError(f"{path}: expected a file")  # a pipe might never end
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror}") from None


def _info(found: Loaded) -> dict[str, Any]:
    schema = found.model.schema
    return {
        "name": found.served.name,
        "file": found.served.path.name,
        "sha256": found.sha256,
        "loaded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kind": "rspmn" if isinstance(found.model, RSPMN) else "spmn",
        "horizon": found.policy.horizon,
        "discount": found.served.discount,
        "state": list(schema.information_sets[0]),
        "decisions": list(schema.decisions),
        "utility": schema.utility,
    }
