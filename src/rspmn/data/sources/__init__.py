"""Engines: where a log's rows are, and who counts them.

Rows stay where they are: in files (DuckDB reads them), in a data frame, on a cluster. What comes
back is counted windows. `files` and `text` open paths, `frames` makes any source a lazy frame,
`rows` and `marks` say what a row and a pair of rows tell, `in_order`, `in_time` and `in_blocks` put
the next row beside each row, `counting` reads what was counted, `offenders` names what is wrong,
and `stored` holds more windows than memory does.
"""
