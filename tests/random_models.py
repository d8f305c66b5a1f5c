"""Random valid networks and random sound templates, for property tests.

Everything is drawn from a numpy generator, so that a seed is an example.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Categorical, Network, NetworkBuilder
from rspmn.end_nodes import end_root
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.values import END, Value

Domains = dict[str, tuple[Value, ...]]


def simplex(rng: np.random.Generator, size: int) -> list[float]:
    return [float(w) for w in rng.dirichlet(np.ones(size))]


def random_leaf(
    rng: np.random.Generator, b: NetworkBuilder, name: str, values: tuple[Value, ...]
) -> int:
    return b.leaf(name, Categorical(values, tuple(simplex(rng, len(values)))))


def random_spn(rng: np.random.Generator, domains: Domains) -> Network:
    b = NetworkBuilder()
    return b.build(grow_spn(rng, b, domains, depth=4))


def grow_spn(rng: np.random.Generator, b: NetworkBuilder, domains: Domains, depth: int) -> int:
    """Grow products over a partition of the variables, and sums over the same ones."""
    names = list(domains)
    if len(names) == 1 and (depth <= 0 or rng.random() < 0.6):
        return random_leaf(rng, b, names[0], domains[names[0]])
    if len(names) > 1 and (depth <= 0 or rng.random() < 0.5):
        rng.shuffle(names)
        cut = int(rng.integers(1, len(names)))
        parts = [names[:cut], names[cut:]]
        return b.product(
            [grow_spn(rng, b, {n: domains[n] for n in part}, depth - 1) for part in parts]
        )
    arity = int(rng.integers(2, 4))
    children = [grow_spn(rng, b, domains, depth - 1) for _ in range(arity)]
    return b.sum(children, simplex(rng, arity))


@dataclass(frozen=True)
class Setting:
    """A schema and what its variables range over."""

    schema: Schema
    domains: Domains


def random_setting(
    rng: np.random.Generator,
    decisions: int,
    most_variables: int = 2,
    values: int = 2,
    states: int = 3,
) -> Setting:
    """I0 has a variable s of some states; other information sets may be empty."""
    order: list[list[str]] = [["s"]]
    domains: Domains = {"s": ("p", "q", "r")[:states]}
    names = iter("abcdefgh")
    budget = most_variables
    for k in range(decisions):
        order.append([f"D{k + 1}"])
        domains[f"D{k + 1}"] = tuple(range(values))
        here = int(rng.integers(0, budget + 1))
        budget -= here
        group = [next(names) for _ in range(here)]
        order.append(group)
        domains |= dict.fromkeys(group, (False, True))
    return Setting(Schema(order, [f"D{k + 1}" for k in range(decisions)], "u"), domains)


@dataclass
class Grower:
    """Grows interface nodes of a template.

    With `told_apart` no sum above a decision hides its choice: children of such sums hold
    different values of a variable. Then the network means what the sum-max-sum rule over the
    observed variables means.
    """

    rng: np.random.Generator
    setting: Setting
    builder: NetworkBuilder
    roots: int
    told_apart: bool
    uneven: bool

    def root(self, values: tuple[Value, ...]) -> int:
        rest = [v for v in self.setting.schema.variables if v not in ("s", "u")]
        return self.builder.product(
            [random_leaf(self.rng, self.builder, "s", values), self.grow(rest)]
        )

    def grow(self, todo: list[str]) -> int:
        if not todo:
            return self.outcome()
        name, rest = todo[0], todo[1:]
        values = self.setting.domains[name]
        b, rng = self.builder, self.rng
        if name in self.setting.schema.decisions:
            offered = [v for v in values if rng.random() < 0.8] or [values[0]]
            return b.max(name, {v: self.grow(rest) for v in offered})
        hide = not self.told_apart or not any(v in self.setting.schema.decisions for v in rest)
        kind = rng.choice(["factor", "split", "mix"] if hide else ["factor", "split"])
        if kind == "factor":
            return b.product([random_leaf(rng, b, name, values), self.grow(rest)])
        if kind == "split":
            parts = [b.leaf(name, Categorical.certain(v)) for v in values]
        else:
            parts = [random_leaf(rng, b, name, values) for _ in range(2)]
        children = [b.product([part, self.grow(rest)]) for part in parts]
        return b.sum(children, simplex(rng, len(children)))

    def outcome(self) -> int:
        """Return a utility and where it leads, sometimes a hidden choice of two."""
        made = [self._outcome() for _ in range(int(self.rng.integers(1, 3)))]
        return self.builder.sum(made, simplex(self.rng, len(made)))

    def _outcome(self) -> int:
        b, rng = self.builder, self.rng
        # whole numbers tie often, others hardly ever
        mean = float(rng.normal(scale=5)) if self.uneven else float(rng.integers(-1, 2))
        utility = b.utility("u", mean, float(rng.integers(0, 9)), 1.5)
        reached = rng.permutation(self.roots)[: int(rng.integers(1, self.roots + 1))]
        latents = [b.latent(int(i)) for i in sorted(reached)]
        return b.product([utility, b.sum(latents, simplex(rng, len(latents)))])


def random_rspmn(
    rng: np.random.Generator,
    setting: Setting,
    roots: int,
    told_apart: bool,
    end: bool = False,
) -> RSPMN:
    """Return a random valid model; `end` makes its last interface node END."""
    b = NetworkBuilder()
    grower = Grower(rng, setting, b, roots + end, told_apart, uneven=bool(rng.random() < 0.7))
    values = setting.domains["s"]
    parts: list[tuple[Value, ...]] = [values] * roots
    if told_apart:
        assert roots <= len(values)
        parts = [values[i::roots] for i in range(roots)]
    made = [grower.root(part) for part in parts]
    if end:
        made.append(end_root(b, setting.schema, roots))
    return RSPMN(setting.schema, random_top(rng, roots), b.build(*made))


def random_top(rng: np.random.Generator, roots: int) -> Network:
    """Return a top network of nested sums and trivial products."""
    b = NetworkBuilder()
    parts = [b.latent(i) for i in range(roots)]
    inner = b.sum(parts, simplex(rng, roots))
    return b.build(b.sum([b.product([inner]), parts[0]], simplex(rng, 2)))


def step_domains(model: RSPMN, domains: Domains) -> Domains:
    """Return what the variables of one step range over, END among it where there is an END."""
    extra = () if model.end is None else (END,)
    return {name: (*values, *extra) for name, values in domains.items()}
