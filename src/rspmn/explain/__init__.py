"""Why a decision was made, what may come of it, and what it depends on."""

from rspmn.explain.explanation import Explanation
from rspmn.explain.information import InformationValue
from rspmn.explain.return_distribution import ReturnDistribution
from rspmn.explain.sensitivity import Sensitivity
from rspmn.explain.tail import TailPolicy

__all__ = ["Explanation", "InformationValue", "ReturnDistribution", "Sensitivity", "TailPolicy"]
