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
    from rspmn import circuit, data, doctor, envs, errors, evaluate, infer, learn, testing
    from rspmn.circuit import Network, NetworkBuilder
    from rspmn.data.episodes import Episodes, Followed
    from rspmn.data.gymnasium import collect
    from rspmn.data.minari import from_minari
    from rspmn.data.sources.count_windows import store_windows, windows
    from rspmn.data.windows import Windows
    from rspmn.doctor import examine
    from rspmn.errors import RspmnError
    from rspmn.evaluate import true_value
    from rspmn.infer.actions import ActionValue, ExpectedUtility
    from rspmn.infer.policy import Policy
    from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn, learn_spn, refit
    from rspmn.log_format import LogFormat
    from rspmn.model import RSPMN
    from rspmn.model_file import load
    from rspmn.schema import Kind, Schema
    from rspmn.spmn import SPMN
    from rspmn.values import END, Value

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


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "END",
    "RSPMN",
    "SPMN",
    "ActionValue",
    "Episodes",
    "ExpectedUtility",
    "Followed",
    "Kind",
    "LearnConfig",
    "LogFormat",
    "Network",
    "NetworkBuilder",
    "Policy",
    "RspmnError",
    "Schema",
    "Value",
    "Windows",
    "__version__",
    "circuit",
    "collect",
    "data",
    "doctor",
    "envs",
    "errors",
    "evaluate",
    "examine",
    "from_minari",
    "infer",
    "learn",
    "learn_rspmn",
    "learn_spmn",
    "learn_spn",
    "load",
    "refit",
    "store_windows",
    "testing",
    "true_value",
    "windows",
]
