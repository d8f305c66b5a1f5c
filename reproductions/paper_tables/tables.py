"""Tables 1 to 3, ours beside the paper's, as rows of text."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reproductions.paper_tables.cells import Facts, horizons
from reproductions.paper_tables.printed import PAPER
from rspmn.envs.domains import DOMAINS


@dataclass(frozen=True)
class Table:
    """A table of text."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> str:
        """Return it as Markdown."""
        rows = [[cell.replace("|", "\\|") for cell in row] for row in (self.head, *self.rows)]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(self.head))
        return "\n".join(lines) + "\n"

    def part(self, names: Sequence[str]) -> "Table":
        """Return some of its columns."""
        at = [self.head.index(name) for name in names]
        return Table(tuple(names), [tuple(row[k] for k in at) for row in self.rows])

    def csv(self) -> str:
        """Return it as CSV."""
        text = io.StringIO(newline="")
        csv.writer(text).writerows([self.head, *self.rows])
        return text.getvalue()


class Results:
    """The facts of all cells."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self.facts = list(facts)
        self.domains = [name for name in DOMAINS if any(f["domain"] == name for f in facts)]

    def of(self, domain: str, way: str, episodes: int | None = None) -> list[Facts]:
        """Return the cells of a domain and way, those of the largest log by default."""
        found = [f for f in self.facts if f["domain"] == domain and f["way"] == way]
        if not found:
            return []
        if episodes is None:
            episodes = max(f["episodes"] for f in found)
        return sorted((f for f in found if f["episodes"] == episodes), key=lambda f: f["seed"])

    def episodes(self, domain: str) -> list[int]:
        """Return the numbers of episodes that were learned from."""
        return sorted({f["episodes"] for f in self.facts if f["domain"] == domain})


def figures(facts: Sequence[Facts], key: str, digits: int = 4) -> str:
    """Return mean and standard deviation over seeds."""
    values = [float(f[key]) for f in facts if key in f]
    if not values:
        return ""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def _median(facts: Sequence[Facts], key: str, digits: int) -> str:
    values = [float(f[key]) for f in facts if key in f]
    return f"{np.median(values):.{digits}f}" if values else ""


def table_1(results: Results) -> Table:
    """Return Table 1: the data sets and the sizes of what is learned."""
    head = (
        "data set", "|X|, |D|", "episodes", "T", "columns", "|SPMN| paper", "|SPMN|",
        "SPMN, parts counted at each place",
        "|RSPMN| paper", "|RSPMN| (top, template)", "template, parts counted at each place",
        "interface nodes",
    )  # fmt: skip
    rows = []
    for name in results.domains:
        mdp, paper = DOMAINS[name](), PAPER[name]
        states, decisions = len(mdp.schema.information_sets[0]), len(mdp.schema.decisions)
        ours, spmn = results.of(name, "factored"), results.of(name, "spmn")
        nodes = f"{spmn[0]['nodes']}{_stopped(spmn[0])}" if spmn else ""
        rows.append((
            name, f"{states}, {decisions}", str(ours[0]["episodes"]), str(mdp.horizon),
            str(mdp.horizon * (states + decisions + 1)), paper.spmn_nodes, nodes,
            _median(spmn, "unshared", 0),
            paper.top_and_template,
            f"{_median(ours, 'top', 0)}, {_median(ours, 'template', 0)}",
            _median(ours, "unshared", 0), _median(ours, "interfaces", 0),
        ))  # fmt: skip
    return Table(head, rows)


def _stopped(facts: Facts) -> str:
    return f" (stopped by {facts['stopped_by']})" if facts.get("stopped_by") else ""


#: Table 2 in two parts that fit a page: what the policy is worth, and what else there is.
VALUES = (
    "data set", "steps", "optimal, exact", "optimal, paper", "MEU", "MEU, paper",
    "MEU, paper's learner", "true value of the policy", "least", "true value, paper's learner",
    "average reward", "average reward, paper",
)  # fmt: skip
#: Those of the paper's own learner, which are left out if it was not run.
OF_LEARNER = ("MEU, paper's learner", "true value, paper's learner")
OTHERS = (
    "data set", "steps", "optimal, exact", "SPMN's MEU", "SPMN's, paper", "table: MEU",
    "table: true value", "cloned: true value", "Δ %, another action", "Δ %, paper",
    "Δ %, a worse action", "log-likelihood", "log-likelihood, paper",
)  # fmt: skip


def table_2(results: Results) -> Table:
    """Return Table 2: MEU, true values, simulated rewards, deviations, log-likelihood."""
    head = (
        "data set", "steps", "optimal, exact", "optimal, paper", "MEU", "MEU, paper",
        *OF_LEARNER, "SPMN's MEU", "SPMN's, paper", "true value of the policy", "least",
        "average reward", "average reward, paper", "table: MEU", "table: true value",
        "cloned: true value",
        "Δ %, another action", "Δ %, paper", "Δ %, a worse action", "log-likelihood",
        "log-likelihood, paper",
    )  # fmt: skip
    rows = []
    for name in results.domains:
        mdp, paper = DOMAINS[name](), PAPER[name]
        ours, table = results.of(name, "factored"), results.of(name, "table")
        learned = results.of(name, "paper")
        for place, h in enumerate(horizons(name)):
            first = place == 0
            spmn = results.of(name, "spmn") or [{}]
            rows.append((
                name, str(h), f"{mdp.optimum(h):.4f}", paper.optimal if first else "",
                figures(ours, f"meu_{h}"), paper.rspmn_meu if first else "",
                figures(learned, f"meu_{h}"), figures(learned, f"worth_{h}"),
                figures(spmn, f"meu_{h}") + (_stopped(spmn[0]) if h == mdp.horizon else ""),
                paper.spmn_meu if h == mdp.horizon else "",
                figures(ours, f"worth_{h}"), f"{min(f[f'worth_{h}'] for f in ours):.4f}",
                figures(ours, f"reward_{h}"), paper.rspmn_reward if first else "",
                figures(table, f"meu_{h}"), figures(table, f"worth_{h}"),
                figures(results.of(name, "clone"), f"worth_{h}"),
                figures(ours, f"deviation_{h}", 1), paper.deviation if first else "",
                figures(ours, f"worse_{h}", 1),
                figures(ours, "log_likelihood", 2) if first else "",
                paper.log_likelihood if first else "",
            ))  # fmt: skip
    return Table(head, rows)


def table_3(results: Results) -> Table:
    """Return Table 3: the times, in seconds."""
    head = (
        "data set", "initial template", "initial, paper", "final template", "final, paper",
        "SPMN", "SPMN, paper", "MEU", "MEU, paper", "SPMN's MEU", "SPMN's MEU, paper",
    )  # fmt: skip
    rows = []
    for name in results.domains:
        paper, ours, spmn = PAPER[name], results.of(name, "factored"), results.of(name, "spmn")
        rows.append((
            name, _median(ours, "initial_seconds", 3), paper.initial,
            _median(ours, "final_seconds", 3), paper.final,
            _median(spmn, "seconds", 1), paper.spmn_learning,
            _median(ours, "meu_seconds", 4), paper.rspmn_evaluation,
            _median(spmn, "meu_seconds", 3), paper.spmn_evaluation,
        ))  # fmt: skip
    return Table(head, rows)


def learners(results: Results) -> Table:
    """Return the paper's own learner beside ours: values, sizes and seconds."""
    head = (
        "data set", "steps", "optimal, exact", "MEU, paper's learner", "MEU, ours",
        "true value, paper's learner", "true value, ours", "interface nodes, paper's learner",
        "ours", "nodes of the template, paper's learner", "ours", "seconds, paper's learner",
        "ours",
    )  # fmt: skip
    rows = []
    for name in results.domains:
        both = results.of(name, "paper"), results.of(name, "factored")
        for place, h in enumerate(horizons(name)):
            sizes = [_median(way, key, 0) for key in ("interfaces", "template") for way in both]
            seconds = [_seconds(way) for way in both]
            rows.append((
                name, str(h), f"{DOMAINS[name]().optimum(h):.4f}",
                *(figures(way, f"{key}_{h}") for key in ("meu", "worth") for way in both),
                *(sizes + seconds if place == 0 else [""] * 6),
            ))  # fmt: skip
    return Table(head, rows)


def _seconds(facts: Sequence[Facts]) -> str:
    """Return the median of the seconds that learning takes."""
    whole = [{"learned": f["initial_seconds"] + f["final_seconds"]} for f in facts]
    return _median(whole, "learned", 2)


def curves(results: Results) -> Table:
    """Return the learning curves: MEU and true value by episodes."""
    head = (
        "data set", "episodes", "steps", "optimal", "factored: MEU", "factored: true value",
        "counts: MEU", "counts: true value", "table: MEU", "table: true value",
        "worse than the table",
    )  # fmt: skip
    rows = []
    for name in results.domains:
        h = horizons(name)[0]
        for episodes in results.episodes(name):
            ways = [results.of(name, way, episodes) for way in ("factored", "counts", "table")]
            if not ways[0]:
                continue
            cells = [figures(way, f"{key}_{h}") for way in ways for key in ("meu", "worth")]
            ours, table = ([f[f"worth_{h}"] for f in way] for way in (ways[0], ways[2]))
            behind = float(np.mean(table) - np.mean(ours)) if table else 0.0
            worse = f"by {behind:.4f}" if behind > 1e-9 else ""
            optimum = f"{DOMAINS[name]().optimum(h):.4f}"
            rows.append((name, str(episodes), str(h), optimum, *cells, worse))
    return Table(head, rows)


def bcq(results: Results) -> Table:
    """Return the results of batch-constrained Q-learning."""
    head = (
        "data set", "settings", "episodes", "steps of training", "seconds", "Q-value of the start",
        "steps", "true value", "average reward", "average reward, paper", "optimal",
        "factored: true value",
    )  # fmt: skip
    rows = []
    for name in results.domains:
        for way in ("bcq-default", "bcq-tuned"):
            numbers = [e for e in results.episodes(name) if results.of(name, way, e)]
            for facts in (f for e in numbers for f in results.of(name, way, e)):
                ours = results.of(name, "factored", facts["episodes"])
                rows += [
                    (
                        name, way.removeprefix("bcq-"), str(facts["episodes"]),
                        str(facts["steps"]), f"{facts['seconds']:.0f}",
                        f"{facts['promised']:.4f}", str(h), f"{facts[f'worth_{h}']:.4f}",
                        f"{facts[f'reward_{h}']:.4f}",
                        PAPER[name].bcq if h == horizons(name)[0] else "",
                        f"{DOMAINS[name]().optimum(h):.4f}", figures(ours, f"worth_{h}"),
                    )
                    for h in horizons(name)
                ]  # fmt: skip
    return Table(head, rows)
