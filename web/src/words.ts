// Numbers and states in words.
import { format } from "d3-format";

import type { Report, State, Value } from "./data";

const grouped = format(",.0f");

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return grouped(value).replace("−", "−");
  return format(".4~g")(value);
}

/** A probability that was found by draws, in a table. */
export function drawnShare(share: number | null | undefined): string {
  if (typeof share !== "number") return "–";
  if (share > 0.995) return "> 99 %";
  return share < 0.005 ? "< 1 %" : percent(share);
}

/** The same in a sentence: none is certain. */
export function drawnPercent(share: number): string {
  if (share > 0.995) return "more than 99 %";
  return share < 0.005 ? "less than 1 %" : percent(share);
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return "–";
  if (share > 0.995 && share < 1 - 1e-9) return "> 99 %";
  if (share > 0 && share < 0.005) return "< 1 %";
  return `${Math.round(100 * share)} %`;
}

export function range(low: number | null, high: number | null, as = number): string {
  return low === null || high === null ? "" : `${as(low)} to ${as(high)}`;
}

/** A format for numbers that are compared: as many decimals for each as the largest needs. */
export function alike(values: (number | null | undefined)[]): (value: number | null | undefined) => string {
  const found = values.filter((value) => typeof value === "number" && Number.isFinite(value)) as number[];
  const most = Math.max(0, ...found.map(Math.abs));
  const whole = found.every(Number.isInteger);
  const places = whole || most === 0 ? 0 : Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(most))));
  const fixed = format(`,.${places}f`);
  return (value) =>
    value === null || value === undefined || !Number.isFinite(value)
      ? "–"
      : fixed(Math.abs(value) < 0.5 * 10 ** -places ? 0 : value);
}

/** Logged steps: soft borders share steps among states, so that they need not be whole. */
export function steps(count: number): string {
  if (count > 0 && count < 1) return "< 1";
  return number(count < 10 ? Math.round(10 * count) / 10 : Math.round(count));
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** A value that was drawn: numbers to four digits. */
export function drawn(value: Value | null): string {
  if (value === null) return "?";
  return typeof value === "number" && !Number.isInteger(value) ? format(".4~g")(value) : shown(value);
}

export function shown(value: Value): string {
  return typeof value === "boolean" ? (value ? "true" : "false") : String(value);
}

export function stateText(state: State): string {
  return Object.entries(state)
    .map(([name, value]) => `${name}=${shown(value)}`)
    .join(", ");
}

export function decidedText(decided: State): string {
  const values = Object.values(decided).map(shown);
  return values.length ? values.join(", ") : "nothing known";
}

export function horizonText(report: Report): string {
  const { kind, horizon, discount } = report.model;
  if (kind === "spmn") return "";
  const steps = horizon === null ? ", without a horizon" : ` over ${plural(horizon, "step")}`;
  return discount === 1 ? steps : `${steps}, discount ${discount}`;
}
