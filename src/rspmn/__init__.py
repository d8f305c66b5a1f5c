"""Recurrent sum-product-max networks: decisions learned from logs.

>>> from rspmn.envs.paper_grid import paper_grid
>>> model = paper_grid()
>>> model.meu({"x": 0, "y": 0}, horizon=4) == 16
True
>>> [best.value for best in model.best_decisions({"x": 0, "y": 0}, horizon=4)]
['down']
"""

from rspmn.circuit import Network, NetworkBuilder
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.errors import RspmnError
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.values import END, Value

__version__ = "0.1.0"

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
]
