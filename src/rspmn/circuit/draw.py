"""Pictures of networks, drawn as in the paper's figures.

Sums and products are circles with their signs, max nodes boxes with their decision, utilities
diamonds, variables ellipses, and latents circles in the colour of their interface node.
"""

import colorsys
import io
import textwrap
from collections.abc import Sequence
from typing import Any

from rspmn.circuit.layout import DrawnNode, lay_out
from rspmn.circuit.network import Network
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.errors import CircuitError, MissingExtraError
from rspmn.values import show

#: A picture with more symbols is unreadable, and takes long to make.
MOST_DRAWN = 1000


def colour(interface: int) -> str:
    """Return the colour of an interface node; consecutive ones differ most.

    >>> colour(0), colour(1)
    ('#f79c9c', '#9cb7f7')
    """
    hue = (interface * 0.6180339887) % 1  # multiples of the golden ratio never repeat a hue
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.37, 0.97)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def label(node: Node) -> str:
    """Return the text in a node."""
    match node:
        case Sum():
            return "+"
        case Product():
            return "×"
        case Max():
            return f"max {node.decision}"
        case Leaf():
            return f"{node.variable}\n{node.distribution.describe()}"
        case Utility():
            return f"{node.variable}\n{show(node.mean)}"
        case Latent():
            return str(node.interface)
        case FactoredLatents():
            return "factors"


def dot(network: Network) -> str:
    """Return the network as Graphviz text."""
    drawing = lay_out(network)
    lines = ["digraph network {", "  node [fontname=Helvetica, fontsize=11];"]
    for number, place in enumerate(drawing.places):
        style = ", ".join(f"{key}={_quote(value)}" for key, value in _dot_style(place).items())
        lines.append(f"  n{number} [{style}];")
    if len(drawing.roots) > 1:
        for interface, root in enumerate(drawing.roots):
            fill = f"style=filled, fillcolor={_quote(colour(interface))}"
            lines.append(f"  n{root} [{fill}, xlabel={_quote(str(interface))}];")
    for edge in drawing.edges:
        text = f" [label={_quote(edge.label)}]" if edge.label else ""
        lines.append(f"  n{edge.parent} -> n{edge.child}{text};")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_style(place: DrawnNode) -> dict[str, str]:
    shapes = {
        Sum: "circle",
        Product: "circle",
        Max: "box",
        Utility: "diamond",
        Leaf: "ellipse",
        Latent: "circle",
        FactoredLatents: "circle",
    }
    style = {"label": label(place.node), "shape": shapes[type(place.node)]}
    if isinstance(place.node, Latent):
        style |= {"style": "filled", "fillcolor": colour(place.node.interface)}
    return style


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# ---- SVG and PNG -----------------------------------------------------------------------

_ACROSS, _DOWN = 0.95, 1.15  # inches between neighbours
#: Where on an edge its label is, from the parent, 0, to the child, 1.
_LABELLED_AT = 0.68


def render(
    network: Network, format: str, interfaces: Sequence[int] = (), captions: Sequence[str] = ()
) -> bytes:
    """Return the picture as "svg" or "png".

    Parameters
    ----------
    network
        The network.
    format
        "svg" or "png".
    interfaces
        The interface nodes that its roots are, if they are not numbered from 0.
    captions
        What to write above each root, instead of its number.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib: pip install 'rspmn[plot]', or use dot()"
        ) from None
    drawing = lay_out(network)
    if len(drawing.places) > MOST_DRAWN:
        raise CircuitError(
            f"a network of {len(network)} nodes takes {len(drawing.places)} symbols, as small "
            f"shared parts are repeated, and more than {MOST_DRAWN} are unreadable: draw fewer "
            "steps or another part, or use dot()"
        )
    right = max(place.x for place in drawing.places) + 0.5
    bottom = max(place.layer for place in drawing.places) + 1
    figure = Figure(figsize=(_ACROSS * (right + 0.6), _DOWN * bottom))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.3, right + 0.3), ylim=(bottom - 0.4, -0.6))
    axes.axis("off")
    for edge in drawing.edges:
        _draw_edge(axes, drawing.places[edge.parent], drawing.places[edge.child], edge.label)
    numbers = interfaces or (range(len(drawing.roots)) if len(drawing.roots) > 1 else ())
    interface = dict(zip(drawing.roots, numbers, strict=False))
    above = dict(zip(drawing.roots, captions, strict=False))
    for number, place in enumerate(drawing.places):
        _draw_node(axes, place, interface.get(number), above.get(number))
    picture = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "rspmn", "svg.fonttype": "path"}):
        stamp = {"Date": None} if format == "svg" else None
        figure.savefig(picture, format=format, dpi=110, metadata=stamp)
    return picture.getvalue()


def _draw_edge(axes: Any, parent: DrawnNode, child: DrawnNode, text: str) -> None:
    """Draw a curve that comes to the child from above, and so does not pass behind its siblings."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    down = child.layer - parent.layer
    points = [
        (parent.x, parent.layer), (parent.x, parent.layer + 0.2 * down),
        (child.x, parent.layer + 0.35 * down), (child.x, child.layer),
    ]  # fmt: skip
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    look = {"facecolor": "none", "edgecolor": "#555555", "lw": 0.9, "zorder": 1}
    axes.add_patch(PathPatch(Path(points, codes), **look))
    if text:
        text = "\n".join(textwrap.wrap(text, 13))
        t = _LABELLED_AT
        shares = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
        x, y = (sum(s * p[k] for s, p in zip(shares, points, strict=True)) for k in (0, 1))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        _write(axes, x, y, text, 7, bbox=box, zorder=2)


def _draw_node(
    axes: Any, place: DrawnNode, interface: int | None, caption: str | None = None
) -> None:
    from matplotlib.patches import Ellipse, FancyBboxPatch, Polygon

    node, x, y = place.node, place.x, place.layer
    fill = "white" if interface is None else colour(interface)
    look: dict[str, Any] = {"facecolor": fill, "edgecolor": "#222222", "lw": 1.1, "zorder": 3}
    match node:
        case Max():
            width = max(0.5, 0.075 * len(label(node)) + 0.14)
            axes.add_patch(
                FancyBboxPatch(
                    (x - width / 2, y - 0.14), width, 0.28, boxstyle="square,pad=0.02", **look
                )
            )
        case Utility():
            corners = [(x - 0.46, y), (x, y - 0.33), (x + 0.46, y), (x, y + 0.33)]
            axes.add_patch(Polygon(corners, **look))
        case Leaf():
            axes.add_patch(
                Ellipse((x, y), 0.82, 0.2 + 0.16 * (label(node).count("\n") + 1), **look)
            )
        case Latent():
            look["facecolor"] = colour(node.interface)
            axes.add_patch(Ellipse((x, y), 0.4, 0.4 * _ACROSS / _DOWN, **look))
        case _:
            axes.add_patch(Ellipse((x, y), 0.4, 0.4 * _ACROSS / _DOWN, **look))
    size = 13 if isinstance(node, Sum | Product) else 7.5
    _write(axes, x, y, label(node), size, zorder=4)
    if interface is not None or caption is not None:
        _write(axes, x, y - 0.36, str(interface) if caption is None else caption, 8, zorder=4)


def _write(axes: Any, x: float, y: float, text: str, size: float, **look: Any) -> None:
    # without parse_math, a dollar sign in a name is a dollar sign
    axes.text(x, y, text, fontsize=size, ha="center", va="center", parse_math=False, **look)
