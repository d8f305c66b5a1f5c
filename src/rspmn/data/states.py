"""The distinct states of a log."""

from dataclasses import dataclass

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_groups
from rspmn.data.windows import Windows
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class States:
    """The distinct states that steps started from or led to."""

    columns: dict[str, Column]  # of I0's variables, [count]
    count: int
    of_steps: Ints  # [num_windows]
    of_successors: Ints  # [num_windows]; -1 where there is none


def distinct_states(windows: Windows) -> States:
    """Return the distinct states of all windows, numbered."""
    names = windows.schema.information_sets[0]
    follows = np.flatnonzero(windows.followed <= Followed.STATE)
    columns = [
        windows.columns[name].append(windows.next_columns[name].take(follows)) for name in names
    ]
    groups = joint_groups(columns, len(windows) + len(follows))
    members = groups.members()
    of_successors = np.full(len(windows), -1)
    of_successors[follows] = groups.codes[len(windows) :]
    return States(
        {name: column.take(members) for name, column in zip(names, columns, strict=True)},
        groups.size,
        groups.codes[: len(windows)].astype(np.int64),
        of_successors,
    )
