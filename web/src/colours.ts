// Colours that colour-blind readers can tell apart: cividis for numbers, Okabe and Ito's for names.
import { interpolateCividis } from "d3-scale-chromatic";

import { report, type StateNode } from "./data";
import { decidedText } from "./words";

const NAMES = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c",
];

const values = report.nodes.map((node) => node.value).filter((value) => value !== null);
export const lowest = Math.min(...values);
export const highest = Math.max(...values);

const counts = new Map<string, number>();
for (const node of report.nodes) {
  const text = decidedText(node.decided);
  counts.set(text, (counts.get(text) ?? 0) + node.visits + 1e-9);
}
/** What is decided anywhere, the commonest first. */
export const decisions = [...counts].sort((a, b) => b[1] - a[1]).map(([text]) => text);

export function ofValue(value: number | null): string {
  if (value === null) return "#999999";
  const share = highest > lowest ? (value - lowest) / (highest - lowest) : 0.5;
  return interpolateCividis(0.08 + 0.92 * share);
}

export function ofDecision(text: string): string {
  const place = decisions.indexOf(text);
  return NAMES[Math.min(place, NAMES.length - 1)]!;
}

export type By = "value" | "decision";

export function ofNode(node: StateNode, by: By): string {
  return by === "value" ? ofValue(node.value) : ofDecision(decidedText(node.decided));
}
