"""The paper's three tables, beside the exact optimum and the baselines."""

from reproductions.paper_tables.campaign import Campaign, run_campaign
from reproductions.paper_tables.report import write_report

__all__ = ["Campaign", "run_campaign", "write_report"]
