"""The paper's three tables again, beside the exact optimum and the baselines."""

from rspmn.reproduce.campaign import Campaign, run_campaign
from rspmn.reproduce.report import write_report

__all__ = ["Campaign", "run_campaign", "write_report"]
