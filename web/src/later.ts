// What is known of decisions later in an episode, when fewer steps are left.
import { report, type Action, type Later, type Point, type StateNode } from "./data";
import { judged } from "./judged";

/** The numbers of steps to go that the page has, the most first. */
export const LEFTS: number[] = report.model.horizon === null
  ? []
  : [report.model.horizon, ...report.later.map((each) => each.left)];

const SINGLE = report.model.decisions.length === 1;
const byLeft = new Map(report.later.map((each) => [each.left, each]));

/** Where the actions of each point start among all. */
const starts = new Map<string, number>();
{
  let count = 0;
  // Numbers as keys are in ascending order, which is the order in which the points were written.
  for (const [point, { actions }] of Object.entries(report.points)) {
    starts.set(point, count);
    count += actions.length;
  }
}

function at<T>(numbers: T | T[], place: number): T {
  return Array.isArray(numbers) ? (numbers[place] as T) : numbers;
}

function changed(action: Action, later: Later, place: number): Action {
  return {
    ...action,
    utility: later.worth[place]!,
    known: at(later.known, place),
    delay: at(later.delay, place),
    supported: at(later.supported, place),
    // With several decisions in a step, what is decided after this one may differ, too.
    now: later.left === 1 ? later.worth[place]! : SINGLE ? action.now : null,
    leads: SINGLE ? action.leads : [],
    low: null, high: null, probability: null,
    taken: false, best: false,
  };
}

/** A point with so many steps to go; null is as at the start. */
export function pointAt(point: number, left: number | null): Point | undefined {
  const facts = report.points[point];
  const later = left === null ? undefined : byLeft.get(left);
  if (!facts || !later) return facts;
  const first = starts.get(String(point))!;
  const actions = facts.actions.map((action, k) => changed(action, later, first + k));
  return { ...facts, tooClose: false, rivals: [], actions: judged(actions) };
}

/** What is recommended in a node, and what that is worth, with so many steps to go. */
export function nodeAt(node: StateNode, left: number | null): StateNode {
  const point = node.point === null ? undefined : pointAt(node.point, left);
  if (!point || left === null || left === report.model.horizon) return node;
  const best = point.actions.find((action) => action.taken);
  return {
    ...node,
    decided: best ? { [point.decision]: best.value } : {},
    value: best?.utility ?? null,
    supported: best?.supported ?? null,
    steps: best?.steps ?? 0,
    tooClose: false,
  };
}
