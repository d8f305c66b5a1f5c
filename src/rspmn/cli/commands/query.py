"""Commands that ask a model: what to do, what it is worth, and why."""

import click

from rspmn.cli import options
from rspmn.cli.framework import Option, Section
from rspmn.cli.options import OUTPUT, Number
from rspmn.cli.streams import InputFile

ASK = Section("Query a model")


@ASK.command(
    "act.show_actions",
    "value of every action in a state, best first",
    "rspmn act lake.json --state cell=14 --horizon 100",
    "rspmn act lake.json --state cell=14 --horizon 100 --sure",
    "rspmn act lake.json --table cases.csv --horizon 100 -o decisions.csv",
    "rspmn act oil.json --given test=yes result=open --quiet",
    "cat cases.csv | rspmn act lake.json --table - --horizon 100 -o -",
)
def _act() -> list[click.Parameter]:
    return [
        options.model(),
        Option("--table", type=InputFile(), metavar="FILE",
               help="a file of states, one per row; - is standard input"),
        Option("--sure", is_flag=True,
               help="also print 90 % intervals and the probability that each action is best"),
        *options.question(),
        options.output(".csv", "a .csv file to write the decisions for --table to"),
    ]  # fmt: skip


ASK.commands["decide"] = ASK.commands["act"]._replace(summary="the same as act")


@ASK.command(
    "explain.explain",
    "explain why an action is best in a state",
    "rspmn explain lake.json --state cell=14 --horizon 30",
    "rspmn explain lake.json --state cell=14 --horizon 30 --log log.csv -o why.svg",
)
def _explain() -> list[click.Parameter]:
    return [
        options.model(),
        *options.question(),
        options.time_step(),
        options.log_files_option(
            "files of the log: also show the logged steps nearest to the state", required=False
        ),
        options.output(".svg", "an .svg or .png file to plot the values of the actions to"),
    ]


@ASK.command(
    "explain.show_returns",
    "distribution of the return: quantiles and CVaR",
    "rspmn returns lake.json --horizon 30",
    "rspmn returns lake.json --state cell=14 --horizon 30 --tail 0.1",
)
def _returns() -> list[click.Parameter]:
    return [
        options.model(),
        *options.question(),
        options.time_step(),
        Option("--tail", type=Number(0, 1, whole=False), metavar="SHARE",
               help="also plan for the mean of this share of worst returns (CVaR)"),
    ]  # fmt: skip


@ASK.command(
    "explain.show_information",
    "value of observing a variable before the decision",
    "rspmn information lake.json --horizon 30 --observe cell",
)
def _information() -> list[click.Parameter]:
    return [
        options.model(),
        Option("--observe", several=".+", metavar="NAME",
               help="variables to observe, one at a time; default: all that are not in --state"),
        *options.question(),
        options.time_step(),
    ]  # fmt: skip


@ASK.command(
    "explain.show_sensitivity",
    "probabilities at which the best action changes",
    "rspmn sensitivity lake.json --state cell=14 --horizon 30",
    "rspmn sensitivity lake.json --state cell=14 --horizon 30 --event cell=13",
)
def _sensitivity() -> list[click.Parameter]:
    return [
        options.model(),
        *options.question(),
        options.time_step(),
        Option("--event", several=r"[^=]+=.*", metavar="NAME=VALUE",
               help="event in the next step, as in --event cell=14; default: each interface node"),
        Option("--top", type=Number(1), default=10, metavar="N",
               help="number of thresholds to list, nearest first, default 10"),
    ]  # fmt: skip


@ASK.command(
    "act.show_meu",
    "maximum expected utility, from the start or from a state",
    "rspmn meu lake.json --horizon 100",
    "rspmn meu lake.json --state cell=14 --discount 0.95",
)
def _meu() -> list[click.Parameter]:
    return [options.model(), *options.question()]


@ASK.command(
    "policy.show_policy",
    "best decision in every state, as a table or in other formats",
    "rspmn policy lake.json --horizon 100",
    "rspmn policy lake.json --horizon 100 -o policy.csv",
    "rspmn policy lake.json --horizon 100 --to python -o lake_policy.py",
    "rspmn policy lake.json --horizon 100 --to tree",
)
def _policy() -> list[click.Parameter]:
    return [
        options.model(),
        *options.plan(),
        options.time_step(),
        Option("--to", type=click.Choice(["csv", "json", "python", "tree", "sql"]), section=OUTPUT,
               help="format to export the policy to, for use without rspmn: a CSV table, JSON, a "
               "Python module, a decision tree as text, or an SQL query"),
        options.output(".csv", "the file to write, .csv by default"),
    ]  # fmt: skip


@ASK.command(
    "evaluate.evaluate",
    "estimate the value of a policy from a model and a log",
    "rspmn evaluate lake.json --log log.csv --draws 50",
    "rspmn evaluate lake.json --log log.csv --policy uniform --draws 50 --level 0.95",
)
def _evaluate() -> list[click.Parameter]:
    return [
        options.model(),
        options.log_files_option(),
        Option(
            "--policy", metavar="POLICY",
            help="a .csv file of rules, uniform, practice or recommended; default: compare the "
            "recommended policy with current practice",
        ),
        Option("--horizon", type=Number(1), metavar="STEPS",
               help="number of steps; default: length of the longest episode"),
        options.discount(),
        Option("--probability", metavar="COLUMN",
               help="column with the probability of each logged decision; default: estimated"),
        Option("--weights", metavar="COLUMN",
               help="of single decisions: column with the number of times that each row occurred"),
        Option("--draws", type=Number(1), default=300, metavar="N",
               help="number of draws from the posterior, default 300"),
        Option("--level", type=Number(0, 1, whole=False), default=0.9, metavar="SHARE",
               help="confidence level of the intervals, default 0.9"),
        options.seed(),
        Option("--top", type=Number(0), default=10, metavar="N",
               help="number of states to list without --policy, default 10"),
        *options.log_format(),
    ]  # fmt: skip
