"""A log whose states lack values, completed by draws.

Interface nodes are divided by several variables, and where each is often missing, few steps have
them all: too few to find structure from. But what is missing can be inferred from the rest of the
step and from what followed. So values are drawn from what the log says of them, once, and learning
goes on with complete steps. Draws, not best guesses: those would make states look more certain than
they are.
"""

import math
from dataclasses import replace

import numpy as np

from rspmn.context_trees import Contexts
from rspmn.data.windows import Windows
from rspmn.infer.compiled.groups import drawn_columns
from rspmn.learn.missing.lacking_steps import CodedSteps, lacks_values, steps_of, unrolled, written
from rspmn.learn.missing.whole_states import drawn_as_states
from rspmn.learn.successors.trees import learn_tied
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints

#: Variables of more values than this are not drawn.
MOST_VALUES = 64
#: The same log is completed in the same way, whoever asks.
SEED = 0


def is_completed(windows: Windows) -> bool:
    """Return whether what states lack is drawn.

    It is if a state has several variables, all of finitely many values, and nothing is observed
    after a decision. A state of one variable is unknown where that is missing: such steps are
    divided by `rspmn.learn.partial_steps`. If absence is informative, nothing is drawn.
    """
    schema = windows.schema
    names = schema.information_sets[0]
    columns = [windows.columns[name] for name in names]
    return (
        len(names) > 1
        and not any(schema.information_sets[1:])
        and not schema.informative
        and all(name in windows.next_columns for name in names)
        and all(c.kind is not Kind.CONTINUOUS and len(c.domain) <= MOST_VALUES for c in columns)
        and not any(column.missing.all() for column in columns)
        and steps_lacking(windows) > 0
    )


def steps_lacking(windows: Windows) -> int:
    """Return how many steps lack a value of their state, or of the one that followed.

    Steps that led to a state of which nothing is known are not counted.
    """
    return int(windows.counts[lacks_values(windows) & ~windows.went_on].sum())


def completed(windows: Windows, deadline: float = math.inf) -> Windows:
    """Return a log with values drawn for what its states lack; others as they are.

    Nothing is learned for it after the `time.monotonic()` of the deadline: what is still missing
    then is drawn given little.

    >>> from rspmn import Episodes, Schema
    >>> log = {"episode": [*range(8)], "time": [0] * 8, "x": [0, 1] * 4, "a": ["go"] * 8,
    ...        "y": [0, 1, 0, 1, 0, 1, None, None], "u": [0.0, 1.0] * 4}
    >>> schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    >>> windows = Windows.from_episodes(Episodes.from_long(log, schema, ending="end"))
    >>> windows, completed(windows)
    (Windows(4 distinct of 8), Windows(2 distinct of 8))
    """
    if not is_completed(windows):
        return windows
    rng = np.random.default_rng(SEED)
    rows = unrolled(windows)
    steps = drawn_as_states(drawn_one_by_one(steps_of(rows), rng, deadline), rng, deadline)
    return written(rows, steps)


def drawn_one_by_one(steps: CodedSteps, rng: np.random.Generator, deadline: float) -> CodedSteps:
    """Return the steps with a value for whatever is missing.

    After the `time.monotonic()` of the deadline, values are drawn given little or nothing.
    """
    size = len(steps.names)
    codes = np.hstack([steps.state, steps.next])  # [rows, variables of both]
    lacking = np.hstack([steps.lacking, steps.next_lacking])
    names = (*steps.names, *(f"{name}'" for name in steps.names), "made", "outcome")
    sizes = np.concatenate([steps.sizes, steps.sizes, [steps.num_made, steps.num_outcomes]])
    for k in np.flatnonzero(lacking.any(axis=0)).tolist():
        others = np.column_stack([codes, steps.made, steps.outcome])
        others[:, k] = 0  # it does not depend on itself
        contexts = Contexts(names, sizes, others)
        if (codes[:, k] > 0).any():
            found = _drawn(contexts, codes[:, k], lacking[:, k], steps.weight, rng, deadline)
        else:  # nothing is known of it, here: any value
            found = rng.integers(1, sizes[k], size=int(lacking[:, k].sum()))
        codes[lacking[:, k], k] = found
    return replace(steps, state=codes[:, :size], next=codes[:, size:])


def _drawn(
    contexts: Contexts, codes: Ints, lacking: Bools, weight: Array, rng: np.random.Generator,
    deadline: float,
) -> Ints:  # fmt: skip
    """Return a value for each row that lacks it, given its context."""
    known = np.flatnonzero(codes > 0)
    tree = learn_tied(contexts, known, [codes[known]], weight[known], deadline=deadline)
    wanted = Contexts(contexts.names, contexts.sizes, contexts.codes[lacking])
    chances = tree.distribution(wanted).toarray()
    return drawn_columns(chances, rng)
