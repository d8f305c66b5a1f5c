"""Recurrent sum-product-max networks: decisions learned from logs.

>>> from rspmn.envs.paper_grid import paper_grid
>>> model = paper_grid()
>>> model.meu({"x": 0, "y": 0}, horizon=4) == 16
True
>>> [best.value for best in model.best_decisions({"x": 0, "y": 0}, horizon=4)]
['down']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rspmn.circuit import Network, NetworkBuilder
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.errors import RspmnError
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.values import END, Value

if TYPE_CHECKING:
    from rspmn.data.recorded import collect, from_minari
    from rspmn.data.sources.count_windows import store_windows, windows

__version__ = "0.1.0"

#: What is imported when it is asked for: these bring engines with them.
LATER = {
    "collect": "rspmn.data.recorded",
    "from_minari": "rspmn.data.recorded",
    "store_windows": "rspmn.data.sources.count_windows",
    "windows": "rspmn.data.sources.count_windows",
}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    raise AttributeError(f"module 'rspmn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "END",
    "RSPMN",
    "Episodes",
    "Followed",
    "Kind",
    "Network",
    "NetworkBuilder",
    "RspmnError",
    "Schema",
    "Value",
    "Windows",
    "__version__",
    "collect",
    "from_minari",
    "store_windows",
    "windows",
]
