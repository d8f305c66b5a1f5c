"""What a user would pick instead."""

from rspmn.baselines.tabular import Tabular

__all__ = ["Tabular"]
