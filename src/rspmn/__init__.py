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
    from rspmn import circuit, data, doctor, envs, errors, evaluate, infer, learn, trust
    from rspmn.circuit import Network, NetworkBuilder
    from rspmn.data.episodes import Episodes, Followed
    from rspmn.data.gymnasium import collect
    from rspmn.data.minari import from_minari
    from rspmn.data.sources.count_windows import store_windows, windows
    from rspmn.data.windows import Windows
    from rspmn.doctor import examine
    from rspmn.errors import RspmnError
    from rspmn.evaluate import true_value
    from rspmn.infer.actions import ActionValue
    from rspmn.infer.meu import ExpectedUtility
    from rspmn.infer.policy import Policy
    from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn, learn_spn, refit
    from rspmn.log_format import LogFormat
    from rspmn.model import RSPMN
    from rspmn.model_file import load
    from rspmn.schema import Kind, Schema
    from rspmn.spmn import SPMN
    from rspmn.trust import HonestValue
    from rspmn.values import END, Value

__version__ = "0.1.0"

#: The names that are imported from each module; the imports above repeat it for type checkers.
_HOMES = {
    "rspmn.circuit": ["Network", "NetworkBuilder"],
    "rspmn.data.episodes": ["Episodes", "Followed"],
    "rspmn.data.gymnasium": ["collect"],
    "rspmn.data.minari": ["from_minari"],
    "rspmn.data.sources.count_windows": ["store_windows", "windows"],
    "rspmn.data.windows": ["Windows"],
    "rspmn.doctor": ["examine"],
    "rspmn.errors": ["RspmnError"],
    "rspmn.evaluate": ["true_value"],
    "rspmn.infer.actions": ["ActionValue"],
    "rspmn.infer.meu": ["ExpectedUtility"],
    "rspmn.infer.policy": ["Policy"],
    "rspmn.learn": ["LearnConfig", "learn_rspmn", "learn_spmn", "learn_spn", "refit"],
    "rspmn.log_format": ["LogFormat"],
    "rspmn.model": ["RSPMN"],
    "rspmn.model_file": ["load"],
    "rspmn.schema": ["Kind", "Schema"],
    "rspmn.spmn": ["SPMN"],
    "rspmn.trust": ["HonestValue"],
    "rspmn.values": ["END", "Value"],
}
_MODULES = (
    "circuit", "data", "doctor", "envs", "errors", "evaluate", "infer", "learn",
    "trust",
)  # fmt: skip

if not TYPE_CHECKING:  # with it, type checkers would accept any name

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"rspmn.{name}")
        for home, names in _HOMES.items():
            if name in names:
                found = getattr(import_module(home), name)
                globals()[name] = found  # so that this function is called once for each name
                return found
        raise AttributeError(f"module 'rspmn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "END", "RSPMN", "SPMN", "ActionValue", "Episodes", "ExpectedUtility", "Followed", "HonestValue",
    "Kind", "LearnConfig", "LogFormat", "Network", "NetworkBuilder", "Policy", "RspmnError",
    "Schema", "Value", "Windows", "__version__", "circuit", "collect", "data", "doctor", "envs",
    "errors", "evaluate", "examine", "from_minari", "infer", "learn", "learn_rspmn", "learn_spmn",
    "learn_spn", "load", "refit", "store_windows", "true_value", "trust", "windows",
]  # fmt: skip
