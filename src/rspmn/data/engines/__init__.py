"""Engines: where a log's rows are, and who counts them.

Rows stay where they are: in files (DuckDB reads them), in a data frame, on a cluster. What comes
back is counted windows. `files` opens paths, `frames` makes any source a lazy frame, `pairs` puts
the next row beside each row, `counting` is the one expression that counts them, `offenders` names
what is wrong, and `stored` holds more windows than memory does.
"""
