"""Pictures: every node and edge is in them, and nothing stands on anything else."""

import sys
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_models import random_rspmn, random_setting
from rspmn.circuit import Categorical, IntegerHistogram, NetworkBuilder, draw
from rspmn.circuit.draw import MOST_DRAWN, colour
from rspmn.circuit.layout import lay_out
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import CircuitError, MissingExtraError


def test_dot_by_hand() -> None:
    b = NetworkBuilder()
    x = b.leaf("x", Categorical(('say "a"', "b"), (0.25, 0.75)))
    act = b.max("act", {0: b.utility("u", 1.5), 1: b.utility("u", 1.5)})
    assert b.build(b.product([x, act])).dot() == (
        "digraph network {\n"
        "  node [fontname=Helvetica, fontsize=11];\n"
        '  n0 [label="×", shape="circle"];\n'
        '  n1 [label="max act", shape="box"];\n'
        '  n2 [label="u\\n1.5", shape="diamond"];\n'
        '  n3 [label="x\\nsay \\"a\\": 0.25\\nb: 0.75", shape="ellipse"];\n'
        "  n0 -> n1;\n"
        '  n1 -> n2 [label="0, 1"];\n'
        "  n0 -> n3;\n"
        "}\n"
    )


def test_latents_have_the_colour_of_their_root() -> None:
    text = paper_grid().template.dot()
    for interface in range(4):
        assert text.count(f'fillcolor="{colour(interface)}"') >= 2  # the root, and a latent
    assert len({colour(i) for i in range(200)}) == 200


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_nothing_overlaps(seed: int, unfolded: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_rspmn(rng, random_setting(rng, 1), 3, told_apart=False, end=True)
    network = model.unfold(2) if unfolded else model.template
    drawing = lay_out(network)
    assert {place.index for place in drawing.places} == set(range(len(network)))
    drawn = Counter((drawing.places[edge.parent].index, edge.parent) for edge in drawing.edges)
    for (index, _), edges in drawn.items():  # every copy has all its children
        assert edges == len(set(network.nodes[index].children))
    rows: dict[int, list[float]] = {}
    for place in drawing.places:
        rows.setdefault(place.layer, []).append(place.x)
    for xs in rows.values():
        assert np.diff(sorted(xs)).min(initial=1.0) >= 0.5 - 1e-9
    for edge in drawing.edges:
        parent, child = drawing.places[edge.parent], drawing.places[edge.child]
        assert child.index in parent.node.children
    for number, place in enumerate(drawing.places):  # below all its parents, and no further
        above = [
            drawing.places[edge.parent].layer for edge in drawing.edges if edge.child == number
        ]
        assert place.layer == 1 + max(above, default=-1)


def test_svg_and_png() -> None:
    model = paper_grid()
    assert ET.fromstring(model.template.svg()).tag.endswith("svg")
    assert model.template.svg() == model.template.svg()  # the same bytes every time
    assert model.top.png().startswith(b"\x89PNG")
    b = NetworkBuilder()
    single = b.build(b.leaf("n", IntegerHistogram((0, 10), (1.0,))))
    assert "svg" in single.svg()


def test_what_cannot_be_drawn_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    b = NetworkBuilder()
    leaves = [b.leaf(f"x{k}", Categorical.certain(k)) for k in range(MOST_DRAWN)]
    huge = b.build(b.product(leaves))
    with pytest.raises(CircuitError, match="a network of 1001 nodes takes 1001 symbols"):
        huge.svg()
    b = NetworkBuilder()  # 2 + 4 · 300 nodes are drawn, as the leaf and utility have many parents
    leaf, gain = b.leaf("x", Categorical.certain(0)), b.utility("u", 1.0)
    cases = [b.product([leaf, b.max("d", {k: gain})]) for k in range(300)]
    shared = b.build(b.sum(cases, [1 / 300] * 300))
    drawn = len(lay_out(shared).places)
    refused = f"a network of {len(shared)} nodes takes {drawn} symbols"
    with pytest.raises(CircuitError, match=refused):
        shared.svg()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rspmn\[plot\]'"):
        paper_grid().top.png()


def test_roots_have_their_numbers_or_captions(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(draw, "_write", lambda *found, **_: written.append(found[3]))
    template = paper_grid().template
    draw.render(template, "svg", range(len(template.roots)))
    assert {str(k) for k in range(len(template.roots))} <= set(written)
    written.clear()
    draw.render(template, "svg", (), [f"root {k}" for k in range(len(template.roots))])
    assert {f"root {k}" for k in range(len(template.roots))} <= set(written)
    assert "None" not in written
