"""How far the answers of a learned model can be trusted."""

from rspmn.trust.honest import HonestValue
from rspmn.trust.how_sure import ActionInterval, HowSure
from rspmn.trust.posterior import Posterior

__all__ = ["ActionInterval", "HonestValue", "HowSure", "Posterior"]
