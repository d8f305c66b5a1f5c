// The graph of states: nodes are interface nodes, edges follow the recommended action.
import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from "cytoscape";
import fcose from "cytoscape-fcose";

import { ofNode, type By } from "./colours";
import { report, type StateNode } from "./data";
import { isDark } from "./store";
import { decidedText, percent } from "./words";

cytoscape.use(fcose);

const END = "end";
const LEAST = 0.01; // edges that are less probable are left out

function takenLeads(node: StateNode): [number, number][] {
  const point = node.point === null ? undefined : report.points[node.point];
  return point?.actions.find((action) => action.taken)?.leads ?? [];
}

function labelOf(node: StateNode): string {
  const text = Object.values(node.state).join(" · ") || node.text;
  return `${text.length > 26 ? `${text.slice(0, 25)}…` : text}\n${decidedText(node.decided)}`;
}

export function elementsOf(nodes: StateNode[], by: By): ElementDefinition[] {
  const shown = new Set(nodes.map((node) => node.id));
  const most = Math.max(1, ...nodes.map((node) => node.visits));
  const found: ElementDefinition[] = nodes.map((node) => ({
    data: {
      id: String(node.id),
      label: labelOf(node),
      size: 16 + 34 * Math.sqrt(node.visits / most),
      colour: ofNode(node, by),
    },
    classes: node.start > 0 ? "start" : "",
  }));
  let ends = false;
  for (const node of nodes) {
    for (const [to, share] of takenLeads(node)) {
      const target = to === report.end ? END : String(to);
      if (share < LEAST || (target !== END && !shown.has(to))) continue;
      ends ||= target === END;
      found.push({
        data: {
          id: `${node.id}-${target}`, source: String(node.id), target, share,
          label: percent(share), width: 0.6 + 2.4 * share, opacity: 0.25 + 0.55 * share,
        },
        classes: target === String(node.id) ? "loop" : "",
      });
    }
  }
  if (ends) found.push({ data: { id: END, label: "the episode ends", size: 20 }, classes: "end" });
  return found;
}

function styleOf(dark: boolean): StylesheetJson {
  const ink = dark ? "#e8e6e1" : "#1f2328";
  const paper = dark ? "#16181c" : "#ffffff";
  const accent = dark ? "#7cb8ff" : "#0b5cad";
  return [
    {
      selector: "node",
      style: {
        width: "data(size)", height: "data(size)", "background-color": "data(colour)",
        "border-width": 1, "border-color": ink, "border-opacity": 0.5,
        label: "data(label)", "text-wrap": "wrap", color: ink, "font-size": 10,
        "text-valign": "bottom", "text-margin-y": 3, "min-zoomed-font-size": 8,
        "text-outline-color": paper, "text-outline-width": 2,
      },
    },
    { selector: "node.start", style: { "border-width": 3, "border-opacity": 1, "border-style": "double" } },
    { selector: "node.end", style: { shape: "diamond", "background-color": ink, "background-opacity": 0.5 } },
    {
      selector: "edge",
      style: {
        width: "data(width)", opacity: "data(opacity)" as unknown as number, "line-color": ink,
        "target-arrow-color": ink, "target-arrow-shape": "triangle", "arrow-scale": 0.8,
        "curve-style": "bezier",
      },
    },
    { selector: ".faded", style: { opacity: 0.22 } },
    { selector: "node:selected", style: { "border-width": 4, "border-color": accent, "border-opacity": 1 } },
    {
      selector: "edge.told",
      style: {
        "line-color": accent, "target-arrow-color": accent, opacity: 1, label: "data(label)",
        "font-size": 10, color: ink, "text-outline-color": paper, "text-outline-width": 2,
      },
    },
  ];
}

/** A generator of numbers: the same graph is laid out alike every time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function layOut(graph: Core): void {
  const dense = graph.edges().length / (2 * Math.max(1, graph.nodes().length));
  const length = 70 * Math.max(1, Math.sqrt(dense)); // many edges pull nodes onto each other
  const random = Math.random;
  Math.random = seeded(7); // the layout has no seed of its own
  try {
    graph.layout({
      name: "fcose", quality: graph.nodes().length > 600 ? "draft" : "default", animate: false,
      randomize: true, nodeSeparation: 90, idealEdgeLength: length, nodeRepulsion: 6500,
      packComponents: true, padding: 24, fit: true,
    } as cytoscape.LayoutOptions).run();
  } finally {
    Math.random = random;
  }
}

export class StateGraph {
  private readonly core: Core;

  constructor(place: HTMLElement, nodes: StateNode[], by: By, select: (id: number | null) => void) {
    this.core = cytoscape({
      container: place, elements: elementsOf(nodes, by), style: styleOf(isDark()),
      minZoom: 0.05, maxZoom: 4, boxSelectionEnabled: false, selectionType: "single",
    });
    layOut(this.core);
    this.core.on("tap", "node", (event) => {
      const id = event.target.id() as string;
      if (id !== END) select(Number(id));
    });
    this.core.on("tap", (event) => {
      if (event.target === this.core) select(null);
    });
  }

  /** Show a node and what it leads to. */
  show(id: number | null): void {
    const { core } = this;
    core.batch(() => {
      core.elements().removeClass("told faded").unselect();
      if (id === null) return;
      const node = core.getElementById(String(id));
      if (node.empty()) return;
      node.select();
      const near = node.outgoers().union(node).union(node.incomers());
      core.elements().difference(near).addClass("faded");
      node.outgoers("edge").addClass("told");
    });
    const node = id === null ? null : core.getElementById(String(id));
    if (node?.nonempty() && !inside(core, node.renderedPosition())) core.center(node);
  }

  recolour(nodes: StateNode[], by: By): void {
    this.core.batch(() => {
      for (const node of nodes) this.core.getElementById(String(node.id)).data("colour", ofNode(node, by));
    });
    this.restyle();
  }

  restyle(): void {
    this.core.style(styleOf(isDark()));
  }

  zoom(factor: number): void {
    const { core } = this;
    const centre = { x: core.width() / 2, y: core.height() / 2 };
    core.zoom({ level: core.zoom() * factor, renderedPosition: centre });
  }

  fit(): void {
    this.core.resize();
    this.core.fit(undefined, 24);
  }

  get size(): number {
    return this.core.nodes().length;
  }

  destroy(): void {
    this.core.destroy();
  }
}

function inside(core: Core, at: { x: number; y: number }): boolean {
  return at.x > 20 && at.y > 20 && at.x < core.width() - 20 && at.y < core.height() - 20;
}
