"""The report: the tables, the plots, and notes on them."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from reproductions.paper_tables.campaign import Campaign
from reproductions.paper_tables.cells import Facts
from reproductions.paper_tables.plots import plot_episodes, plot_horizons
from reproductions.paper_tables.tables import (
    OF_LEARNER,
    OTHERS,
    VALUES,
    Results,
    Table,
    bcq,
    curves,
    learners,
    table_1,
    table_2,
    table_3,
)
from rspmn.envs.domains import DOMAINS
from rspmn.files import write_atomically


def write_report(campaign: Campaign, facts: list[Facts], folder: Path) -> Path:
    """Write reproduction.md, and beside it the tables as CSV and the plots; return its path."""
    results = Results(facts)
    beside = folder / "reproduction"
    beside.mkdir(parents=True, exist_ok=True)
    tables = {
        "table_1": table_1(results),
        "table_2": table_2(results),
        "table_3": table_3(results),
        "curves": curves(results),
    }
    if "paper" in campaign.baselines:
        tables["learners"] = learners(results)
    if "bcq" in campaign.baselines:
        tables["bcq"] = bcq(results)
    for name, table in tables.items():
        write_atomically(beside / f"{name}.csv", table.csv().encode())
    plot_horizons(results, beside / "meu_by_horizon.svg")
    plot_episodes(results, beside / "value_by_episodes.svg")
    path = folder / "reproduction.md"
    write_atomically(path, _text(campaign, results, tables).encode())
    return path


def _text(campaign: Campaign, results: Results, tables: dict[str, Table]) -> str:
    parts = [
        _introduction(campaign),
        "## Table 1: data sets and sizes\n",
        tables["table_1"].markdown(),
        _ON_SIZES,
        "## Table 2: values\n",
        tables["table_2"].part(_values(tables)).markdown(),
        tables["table_2"].part(OTHERS).markdown(),
        _on_values(results),
        "## Table 3: seconds\n",
        tables["table_3"].markdown(),
        _ON_TIMES,
        *_learners(tables),
        "## MEU by horizon\n",
        "![MEU by horizon](reproduction/meu_by_horizon.svg)\n",
        "## By number of episodes\n",
        tables["curves"].markdown(),
        "![True value by episodes](reproduction/value_by_episodes.svg)\n",
    ]
    if "bcq" in tables:
        parts += ["## Batch-constrained Q-learning\n", tables["bcq"].markdown(), _ON_BCQ]
    return "\n".join(parts)


def _values(tables: dict[str, Table]) -> tuple[str, ...]:
    """Return the columns of values; those of the paper's own learner if it was run."""
    return tuple(name for name in VALUES if "learners" in tables or name not in OF_LEARNER)


def _learners(tables: dict[str, Table]) -> list[str]:
    """Return the part on the paper's own learner, if it was run."""
    if "learners" not in tables:
        return []
    return ["## The paper's learner beside ours\n", tables["learners"].markdown(), _ON_LEARNERS]


def _introduction(campaign: Campaign) -> str:
    domains = (
        "" if len(campaign.domains) == len(DOMAINS) else f"--domains {' '.join(campaign.domains)} "
    )
    command = (
        f"rspmn reproduce {domains}--scale {campaign.scale:g} --seeds {campaign.seeds} "
        f"--baselines {' '.join(campaign.baselines)}"
    )
    return f"""# The paper's tables

Made by `{command}` on {machine()}.

Logs are generated from the domains, which are known exactly (`rspmn domains`), so optima and true
values of policies are computed and not estimated. Figures are means over
{campaign.seeds} logs ± one standard deviation; sizes and times are medians. Average rewards are of
{campaign.simulated:,} simulated episodes. The paper's figures are given as printed.
"""


def machine() -> str:
    """Return the machine and the versions that the figures were made with."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line for line in info.read_text(encoding="utf-8").splitlines())
        names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        model = next(names, model)
    return (
        f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, "
        f"numpy {version('numpy')}"
    )


_ON_SIZES = """\
The paper counts a part of a network once for each place where it is used; here equal parts are
stored once, and both numbers are given. Its columns for Maze count one state variable of two. Its
logs are padded, ours end where episodes do: from padded logs the templates of GridUniverse and
FrozenLake have the paper's sizes, of Maze nearly ([the seven domains](domains.md)).
"""


def _on_values(results: Results) -> str:
    """Return notes on figures of the paper that cannot be compared directly."""
    parts = [_ON_DEVIATION, _ON_LIKELIHOOD]
    if {"SkillTeaching", "Elevators", "CrossingTraffic"} <= {*results.domains}:
        least = -DOMAINS["Elevators"]().optimum(10)
        parts.insert(0, _ON_Q_VALUES.format(least=least))
    if "Taxi" in results.domains:
        parts.insert(0, _ON_TAXI.format(best=DOMAINS["Taxi"]().optimum(50)))
    for facts in results.of("FrozenLake", "spmn"):
        parts.insert(0, _ON_SPMN.format(**facts))
    if "FrozenLake" in results.domains:
        eight, hundred, three = (DOMAINS["FrozenLake"]().optimum(h) for h in (8, 100, 300))
        times = 0.13 / eight
        parts.insert(0, _ON_LAKE.format(eight=eight, hundred=hundred, three=three, times=times))
    return "\n".join(parts)


_ON_LAKE = """\
**FrozenLake's horizons.** The paper's 0.8 and 0.818 are not values of its 8 steps: the best
that can be earned in 8 steps is {eight:.4f}, in 100 it is {hundred:.4f}, in 300 {three:.4f}.
The SPMN's 0.13 is for 8 steps, so the two cannot be compared; as a value of 8 steps it is
{times:.1f} times what is possible.
"""

_ON_SPMN = """\
**The SPMN** is learned as the paper's code does, by `LearnConfig.paper()`, from padded episodes. Of
FrozenLake it is the best plan by the means of logged histories: most of the 4⁸ sequences of actions
were logged once or twice, and max nodes choose the luckiest. By the log that plan is worth
{histories_meu:.4f}, in the world {histories_worth:.4f}.
"""

_ON_TAXI = """\
**Taxi's 8.9** is above what can be earned: over its starts the exact optimum of 50 steps is
{best:.4f}.
"""

_ON_Q_VALUES = """\
**BCQ's figures for the RDDL domains** (-5.42, -1.52, 27.98) are Q-values, not rewards.
Elevators costs at least {least:.3f} on average, and in CrossingTraffic every reward is 0 or
less, so -1.52 and 27.98 are not possible. The average rewards that the paper leaves open are
given above.
"""

_ON_DEVIATION = """\
**Δ %** as the paper counts it, where the first action differs from that of one optimal policy,
says little where several actions are equally good. Another column counts where it is worse.
"""

_ON_LIKELIHOOD = """\
**Log-likelihood.** States that decide alike share an interface node, in which the values of a step
do not depend on those of the step before. CrossingTraffic's 80 states share 40. With an interface
node for each state (`LearnConfig.exact()`) it is -9.2 instead of -20.1
([the seven domains](domains.md)).
"""

_ON_TIMES = """\
Initial: windows, structure and interface nodes. Final: estimation of the template. MEU:
the first query of a model, for the first horizon of the domain in Table 2.
"""

_ON_LEARNERS = """\
"Paper's learner": `LearnConfig.paper()`, the paper's algorithms with its tests and clusterings, in
this code and on the same logs. "Ours": `LearnConfig()`. Both know how episodes ended.
"""

_ON_BCQ = """\
The paper's figures for the last three domains are Q-values of the start. Ours are of one log each;
only on GridUniverse and FrozenLake is training as long as to 50,000 steps. A greedy policy that is
the same at every step. Q-values are discounted by 0.99, so they are not values of a horizon.
"Defaults" are d3rlpy's; its target network is copied every 8,000 steps, which is slow for worlds as
small as these. "Tuned": learning rate 0.001, batches of 64, copied every 200.
"""
