"""The outcomes of a template: products of a utility and an S_L, which say what follows."""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Network, Product, Utility
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.layers import KINDS
from rspmn.infer.compiled.sites import Sites, sites_of
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class Outcomes:
    """All outcomes of a template, in the order of its nodes."""

    nodes: Ints  # [outcomes], in the template
    site: Ints  # [outcomes], the S_L of each
    utility: Ints  # [outcomes], the node of its utility, -1 if it has none
    sites: Sites


def refuse_outcomes(outcomes: Outcomes, counted: int) -> None:
    """Refuse counts of more outcomes than a template has."""
    if counted > len(outcomes.nodes):
        raise EvidenceError(
            f"the model counts {counted} outcomes, but the template has {len(outcomes.nodes)}"
        )


def outcomes_of(template: Network) -> Outcomes:
    """Return the products that have an S_L among their children."""
    arrays, sites = template.arrays, sites_of(template)
    site_of = np.full(len(template), -1)
    site_of[sites.nodes] = np.arange(len(sites.nodes))
    parent = arrays.parents
    product = arrays.kind[parent] == KINDS[Product]
    led = np.flatnonzero(product & (site_of[arrays.children] >= 0))
    nodes, first = np.unique(parent[led], return_index=True)
    utility = np.full(len(template), -1)
    earns = np.flatnonzero(product & (arrays.kind[arrays.children] == KINDS[Utility]))
    utility[parent[earns]] = arrays.children[earns]
    return Outcomes(nodes, site_of[arrays.children[led[first]]], utility[nodes], sites)
