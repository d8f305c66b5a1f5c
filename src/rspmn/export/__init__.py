"""Policies as files that need no rspmn: CSV, JSON, a Python file, a decision tree, SQL.

Each of them answers as `Policy.act` does at one time step: also where values are missing, and with
None or NULL, or an error, in states that the model never saw. Where states are numbers the policy
interpolates; then Python, JSON and SQL hold its formula, CSV its interface nodes, and the tree is
an approximation that says how good it is.
"""

from rspmn.export.json_file import to_json
from rspmn.export.python_file import to_python
from rspmn.export.sql import to_sql
from rspmn.export.table import to_csv
from rspmn.export.tree import to_tree

__all__ = ["to_csv", "to_json", "to_python", "to_sql", "to_tree"]
