"""What a user would pick instead."""

from rspmn.baselines.cloning import Cloned
from rspmn.baselines.sequence_spmn import learn_sequence_spmn
from rspmn.baselines.tabular import Tabular

__all__ = ["Cloned", "Tabular", "learn_sequence_spmn"]
