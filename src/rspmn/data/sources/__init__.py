"""Sources of logs: the rows stay where they are, and counted windows come back.

`open` opens a source with one of the engines (`engine`, `duckdb`, `polars`, `spark`). `log_rows`
gives the columns of a log names of their own; `pair_long` and `pair_wide` put
the next row beside each row, and `pair_codes` says in one integer what a pair is. `window_groups`
reads counted pairs as windows, `validate` names what is wrong with a log, and `count_windows` is
all of it.
"""
