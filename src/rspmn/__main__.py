"""`python -m rspmn`."""

from rspmn.cli import run

run()
