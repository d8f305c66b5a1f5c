"""Recurrent sum-product-max networks: decisions learned from logs.

All that the first hour needs is an attribute of this module, and is imported when it is first used.

>>> import rspmn
>>> from rspmn.envs.frozen_lake import frozen_lake
>>> log = frozen_lake().generate(episodes=20_000, horizon=8, rng=0)
>>> model, info = rspmn.learn_rspmn(log)
>>> model.policy(horizon=100).act({"cell": 14})
'down'
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rspmn import (
        circuit as circuit,
    )
    from rspmn import (
        data as data,
    )
    from rspmn import (
        doctor as doctor,
    )
    from rspmn import (
        envs as envs,
    )
    from rspmn import (
        errors as errors,
    )
    from rspmn import (
        evaluate as evaluate,
    )
    from rspmn import (
        infer as infer,
    )
    from rspmn import (
        learn as learn,
    )
    from rspmn import (
        testing as testing,
    )
    from rspmn.circuit import Network as Network
    from rspmn.circuit import NetworkBuilder as NetworkBuilder
    from rspmn.data.episodes import Episodes as Episodes
    from rspmn.data.episodes import Followed as Followed
    from rspmn.data.gymnasium import collect as collect
    from rspmn.data.minari import from_minari as from_minari
    from rspmn.data.sources.count_windows import store_windows as store_windows
    from rspmn.data.sources.count_windows import windows as windows
    from rspmn.data.windows import Windows as Windows
    from rspmn.doctor import examine as examine
    from rspmn.errors import RspmnError as RspmnError
    from rspmn.evaluate import true_value as true_value
    from rspmn.infer.actions import ActionValue as ActionValue
    from rspmn.infer.actions import ExpectedUtility as ExpectedUtility
    from rspmn.infer.policy import Policy as Policy
    from rspmn.learn import (
        LearnConfig as LearnConfig,
    )
    from rspmn.learn import (
        learn_rspmn as learn_rspmn,
    )
    from rspmn.learn import (
        learn_spmn as learn_spmn,
    )
    from rspmn.learn import (
        learn_spn as learn_spn,
    )
    from rspmn.learn import (
        refit as refit,
    )
    from rspmn.log_format import LogFormat as LogFormat
    from rspmn.model import RSPMN as RSPMN
    from rspmn.model_file import load as load
    from rspmn.schema import Kind as Kind
    from rspmn.schema import Schema as Schema
    from rspmn.spmn import SPMN as SPMN
    from rspmn.values import END as END
    from rspmn.values import Value as Value

__version__ = "0.1.0"

#: The module that each name is imported from; the imports above repeat it for type checkers.
_HOMES = {
    "END": "rspmn.values",
    "RSPMN": "rspmn.model",
    "SPMN": "rspmn.spmn",
    "ActionValue": "rspmn.infer.actions",
    "Episodes": "rspmn.data.episodes",
    "ExpectedUtility": "rspmn.infer.actions",
    "Followed": "rspmn.data.episodes",
    "Kind": "rspmn.schema",
    "LearnConfig": "rspmn.learn",
    "LogFormat": "rspmn.log_format",
    "Network": "rspmn.circuit",
    "NetworkBuilder": "rspmn.circuit",
    "Policy": "rspmn.infer.policy",
    "RspmnError": "rspmn.errors",
    "Schema": "rspmn.schema",
    "Value": "rspmn.values",
    "Windows": "rspmn.data.windows",
    "collect": "rspmn.data.gymnasium",
    "examine": "rspmn.doctor",
    "from_minari": "rspmn.data.minari",
    "learn_rspmn": "rspmn.learn",
    "learn_spmn": "rspmn.learn",
    "learn_spn": "rspmn.learn",
    "load": "rspmn.model_file",
    "refit": "rspmn.learn",
    "store_windows": "rspmn.data.sources.count_windows",
    "true_value": "rspmn.evaluate",
    "windows": "rspmn.data.sources.count_windows",
}
_MODULES = (
    "circuit", "data", "doctor", "envs", "errors", "evaluate", "infer", "learn", "testing",
)  # fmt: skip

if not TYPE_CHECKING:  # with it, type checkers would accept any name

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _HOMES:
            found = getattr(import_module(_HOMES[name]), name)
            globals()[name] = found  # so that this function is called once for each name
            return found
        if name in _MODULES:
            return import_module(f"rspmn.{name}")
        raise AttributeError(f"module 'rspmn' has no attribute {name!r}")


__all__ = sorted([*_HOMES, *_MODULES, "__version__"])


def __dir__() -> list[str]:
    return __all__
