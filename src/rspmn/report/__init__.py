"""The page of a model: a card and an explorer in one file, for people."""

from rspmn.report.page import report_page, write_report
from rspmn.report.page_data import report_data

__all__ = ["report_data", "report_page", "write_report"]
