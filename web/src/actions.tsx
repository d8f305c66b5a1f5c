// Every action with its value, interval, support, where it leads and why.
import * as Plot from "@observablehq/plot";

import type { Answered } from "./answer";
import { Chart } from "./chart";
import { nodeById, nodeText, report, type Action, type Value } from "./data";
import { showNode } from "./store";
import { alike, drawnPercent, drawnShare, number, percent, plural, range, shown, steps } from "./words";

type Any = Action | Answered;

const OVER_TIME = report.model.kind === "rspmn";

export function Actions(props: { decision: string; actions: Any[]; here?: number }) {
  const { actions, decision } = props;
  const valued = actions.filter((action) => action.utility !== null);
  const rows = valued.map((action) => ({ ...action, name: shown(action.value) }));
  const intervals = rows.some((row) => row.low !== null);
  const as = alike(actions.flatMap((action) => [action.utility, action.low, action.high]));
  return (
    <>
      {rows.length > 1 && (
        <Chart
          deps={[actions]}
          label={`Values of the actions of ${decision}`}
          options={() => ({
            height: 46 + 26 * rows.length,
            marginLeft: 100,
            marginRight: 24,
            x: { label: "value", grid: true, nice: true, ticks: 5 },
            y: { label: null, domain: rows.map((row) => row.name), tickSize: 0 },
            marks: [
              Plot.ruleY(rows.filter((row) => row.low !== null), {
                x1: "low", x2: "high", y: "name", strokeWidth: 5, strokeOpacity: 0.4,
                strokeLinecap: "round", stroke: (row) => colour(row.taken),
              }),
              Plot.dot(rows, { x: "utility", y: "name", r: 4.5, fill: (row) => colour(row.taken) }),
            ],
            color: { type: "identity" },
          })}
        />
      )}
      <div class="scroll">
        <table class="actions">
          <thead>
            <tr>
              <th>{decision}</th><th class="n">value</th>
              {intervals && <th class="n">90 % interval</th>}
              {intervals && <th class="n">best</th>}
              {OVER_TIME && <th class="n">now</th>}
              {OVER_TIME && <th class="n">later</th>}
              <th class="n">steps</th>
            </tr>
          </thead>
          <tbody>
            {actions.map((action) => (
              <tr class={action.taken ? "taken" : ""}>
                <th scope="row">{shown(action.value)}{action.taken && <span class="mark"> recommended</span>}</th>
                <td class="n">{as(action.utility)}</td>
                {intervals && <td class="n">{range(action.low, action.high, as)}</td>}
                {intervals && <td class="n">{drawnShare(action.probability)}</td>}
                {OVER_TIME && <td class="n">{as(action.now)}</td>}
                {OVER_TIME && <td class="n">{as(later(action))}</td>}
                <td class="n">{steps(action.steps)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {report.noIntervals && <p class="aside">No intervals: {report.noIntervals}.</p>}
      <p class="why">{why(actions)}</p>
      <Leads actions={actions} here={props.here} />
      <Notes actions={actions} />
    </>
  );
}

function colour(taken: boolean): string {
  return taken ? "var(--accent)" : "var(--quiet)";
}

function later(action: Any): number | null {
  if (action.utility === null || action.now === null) return null;
  const found = action.utility - action.now;
  return Math.abs(found) <= 1e-9 * Math.abs(action.utility) ? 0 : found;
}

/** Why the first action is recommended, in a sentence or two. */
export function why(actions: Any[]): string {
  const taken = actions.find((action) => action.taken);
  if (!taken || taken.utility === null) {
    return "No decision with a known outcome was logged here: the policy is not defined.";
  }
  const others = actions.filter((action) => !action.taken && action.utility !== null);
  if (!others.length) return `${shown(taken.value)} is the only action with a known outcome here.`;
  const next = others.reduce((a, b) => (b.utility! > a.utility! ? b : a));
  const ties = others.filter((action) => action.best);
  const margin = taken.utility - next.utility!;
  const parts = ties.length
    ? [`${shown(taken.value)} has the same value as ${ties.map((each) => shown(each.value)).join(" and ")}, and earns it no later.`]
    : [`The value of ${shown(taken.value)} is ${number(margin)} more than the next best, ${shown(next.value)}.`];
  if (OVER_TIME && !ties.length && taken.now !== null && next.now !== null) {
    const now = taken.now - next.now, after = margin - now;
    const tiny = 1e-3 * Math.abs(margin);
    if (Math.abs(now) <= tiny) parts.push("Both have the same reward now: the difference comes later.");
    else if (Math.abs(after) <= tiny) parts.push("The difference is in the reward of this step.");
    else parts.push(`Of this, ${number(now)} is in this step and ${number(after)} after it.`);
  }
  if (taken.probability !== null) {
    parts.push(`It is the best action with probability ${drawnPercent(taken.probability)}.`);
  }
  return parts.join(" ");
}

function Leads(props: { actions: Any[]; here?: number }) {
  const told = props.actions.filter((action) => action.leads.length > 0);
  if (!told.length || !OVER_TIME) return null;
  return (
    <div class="leads">
      <h4>Next states</h4>
      {told.map((action) => (
        <details open={action.taken}>
          <summary>{shown(action.value)}</summary>
          <ul>
            {action.leads.slice(0, 8).map(([node, share]) => (
              <li>
                <span class="bar" style={{ width: `${Math.max(2, 60 * share)}px` }} />
                <span class="share">{percent(share)}</span>{" "}
                <NodeLink id={node} here={props.here} />
              </li>
            ))}
            {action.leads.length > 8 && <li>and {plural(action.leads.length - 8, "other state")}</li>}
          </ul>
        </details>
      ))}
    </div>
  );
}

export function NodeLink(props: { id: number; here?: number }) {
  if (props.id === props.here) return <>the same state</>;
  if (!nodeById.has(props.id)) return <>{nodeText(props.id)}</>;
  return (
    <button type="button" class="link" onClick={() => showNode(props.id)}>{nodeText(props.id)}</button>
  );
}

function Notes(props: { actions: Any[] }) {
  const noted: [Value, string][] = props.actions.flatMap((action) =>
    action.notes.map((note) => [action.value, note] as [Value, string]));
  if (!noted.length) return null;
  return (
    <ul class="warnings">
      {noted.map(([value, note]) => <li class="note"><strong>{shown(value)}</strong>: {note}</li>)}
    </ul>
  );
}
