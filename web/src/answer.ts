// What to do in any state, from the numbers in the page: the rules are those of `Policy`.
import { forbids } from "./formula";
import { judged } from "./judged";
import { pointAt } from "./later";
import { report, type Action, type Leaf, type Point, type State, type Value } from "./data";

export interface Answered extends Omit<Action, "leads"> {
  available: number;
  leads: [number, number][];
}

export interface Answer {
  decision: string;
  actions: Answered[];
  places: { node: number; probability: number }[];
  /** The share of interface nodes that are not in the page. */
  leftOut: number;
  /** Whether the intervals are those of the state: it is in one interface node. */
  certain: boolean;
  averagedOver: string[];
}

export function taken(answer: Answer): Answered | undefined {
  return answer.actions.find((action) => action.taken);
}

/** The next decision that a state leaves open. */
export function nextDecision(known: State): string | undefined {
  return report.model.decisions.find((name) => !(name in known));
}

/** The variables that are known before a decision, the decisions before it among them. */
export function knownBefore(decision: string): string[] {
  const names = report.variables.map((variable) => variable.name);
  return names.slice(0, names.indexOf(decision));
}

/** The probability, or density, of a value by a leaf. */
export function likelihood(leaf: Leaf, value: Value): number {
  if (leaf.values) {
    const place = leaf.values.findIndex((each) => same(each, value));
    return place >= 0 ? leaf.probabilities![place]! : (leaf.other ?? 0);
  }
  if (typeof value !== "number") return 0;
  if (leaf.edges) return inBins(leaf.edges, leaf.masses!, value);
  if (leaf.knots) return betweenKnots(leaf.knots, leaf.densities!, value);
  if (leaf.centre !== undefined) return bell(leaf, value);
  throw new Error(`a leaf of the family ${leaf.family} is not known to this page`);
}

function same(one: Value, other: Value): boolean {
  return one === other || (typeof one !== "string" && Number(one) === other);
}

function inBins(edges: number[], masses: number[], value: number): number {
  if (!Number.isInteger(value)) return 0;
  for (let k = 0; k < masses.length; k++) {
    if (value >= edges[k]! && value < edges[k + 1]!) return masses[k]! / (edges[k + 1]! - edges[k]!);
  }
  return 0;
}

function betweenKnots(knots: number[], densities: number[], value: number): number {
  const last = knots.length - 1;
  if (value < knots[0]! || value > knots[last]!) return 0;
  let k = 0;
  while (k < last - 1 && value >= knots[k + 1]!) k++;
  const share = (value - knots[k]!) / (knots[k + 1]! - knots[k]!);
  return densities[k]! * (1 - share) + densities[k + 1]! * share;
}

/** Student's t with four degrees of freedom. */
function bell(leaf: Leaf, value: number): number {
  if (value < (leaf.low ?? -Infinity) || value > (leaf.high ?? Infinity)) return 0;
  const height = (x: number) => Math.pow(1 + ((x - leaf.centre!) / leaf.scale!) ** 2 / 4, -2.5);
  return (Math.exp(leaf.log_mode!) * height(value)) / height(leaf.mode!);
}

interface Pair {
  node: number;
  point: number;
  weight: number;
}

/** The ways to a decision by their leaf of each variable. */
const indexed = new Map<string, Map<number, number[][]>[]>();

function waysByLeaf(decision: string): Map<number, number[][]>[] {
  if (!indexed.has(decision)) {
    const { variables, ways } = report.states!;
    const found = variables.map(() => new Map<number, number[][]>());
    for (const way of ways[decision] ?? []) {
      found.forEach((by, place) => {
        const leaf = way[3 + place]!;
        if (!by.has(leaf)) by.set(leaf, []);
        by.get(leaf)!.push(way);
      });
    }
    indexed.set(decision, found);
  }
  return indexed.get(decision)!;
}

/** The likelihood of a value under each leaf of a variable where it is not 0. */
function possible(by: Map<number, number[][]>, value: Value): Map<number, number> {
  const found = new Map<number, number>();
  for (const leaf of by.keys()) {
    const share = leaf < 0 ? 1 : likelihood(report.states!.leaves[leaf]!, value);
    if (share > 0) found.set(leaf, share);
  }
  return found;
}

/** Which interface nodes a state may be in; null is the start of an episode. */
function pairsOf(known: State | null, decision: string): Pair[] {
  const states = report.states!;
  const prior = known === null ? states.starts : states.visits;
  const by = waysByLeaf(decision);
  const given = Object.entries(known ?? {})
    .map(([name, value]) => [states.variables.indexOf(name), value] as const)
    .filter(([place]) => place >= 0)
    .map(([place, value]) => [place, possible(by[place]!, value)] as const);
  let ways = states.ways[decision] ?? [];
  for (const [place, leaves] of given) {
    const here = [...leaves.keys()].flatMap((leaf) => by[place]!.get(leaf)!);
    if (here.length < ways.length) ways = here;
  }
  const found = new Map<string, Pair>();
  for (const way of ways) {
    let weight = (prior[way[0]!] ?? 0) * way[2]!;
    for (const [place, leaves] of given) weight *= leaves.get(way[3 + place]!) ?? 0;
    if (weight === 0) continue;
    const key = `${way[0]} ${way[1]}`;
    const pair = found.get(key);
    if (pair) pair.weight += weight;
    else found.set(key, { node: way[0]!, point: way[1]!, weight });
  }
  return [...found.values()];
}

/** Answer for a state that is chosen in now, on what is known alone, with so many steps to go. */
export function answer(known: State | null, left: number | null = null): Answer | null {
  const decision = nextDecision(known ?? {});
  if (!report.states || decision === undefined) return null;
  const pairs = pairsOf(known, decision);
  const total = pairs.reduce((sum, pair) => sum + pair.weight, 0);
  const shown = pairs.filter((pair) => report.points[pair.point]);
  const inPage = shown.reduce((sum, pair) => sum + pair.weight, 0);
  const before = knownBefore(decision).filter(
    (name) => !report.model.decisions.includes(name) && !(name in (known ?? {})),
  );
  const places = new Map<number, number>();
  for (const pair of pairs) {
    places.set(pair.node, (places.get(pair.node) ?? 0) + pair.weight / total);
  }
  const values = report.variables.find((each) => each.name === decision)!.values!;
  const points = shown.map((pair) => pointAt(pair.point, left)!);
  const offered = values.map((value) => averaged(value, decision, shown, points, inPage, known))
    .map((action) => (isForbidden(decision, action.value, known ?? {}) ? refused(action) : action));
  return {
    decision,
    actions: judged(offered),
    places: [...places].map(([node, probability]) => ({ node, probability }))
      .sort((a, b) => b.probability - a.probability),
    leftOut: total > 0 ? 1 - inPage / total : 0,
    certain: pairs.length === 1 && shown.length === 1,
    averagedOver: before,
  };
}

function isForbidden(decision: string, value: Value, known: State): boolean {
  return report.model.conditions.some((each) => forbids(each, decision, value, known));
}

function refused(action: Answered): Answered {
  return { ...action, utility: null, available: 0, known: 0, supported: 0, steps: 0 };
}

function averaged(
  value: Value,
  decision: string,
  pairs: Pair[],
  points: Point[],
  total: number,
  known: State | null,
): Answered {
  let offered = 0, knownShare = 0, worth = 0, delay = 0, supported = 0, steps = 0, now = 0;
  const leads = new Map<number, number>();
  let only: Action | undefined;
  pairs.forEach((pair, k) => {
    const action = points[k]!.actions.find((each) => same(each.value, value));
    if (!action) return;
    only = action;
    const share = pair.weight * action.known;
    offered += pair.weight;
    knownShare += share;
    worth += share * (action.utility ?? 0);
    delay += share * action.delay;
    now += share * (action.now ?? NaN);
    supported += pair.weight * (action.supported ?? 0);
    steps += action.steps;
    for (const [node, chance] of action.leads) {
      leads.set(node, (leads.get(node) ?? 0) + share * chance);
    }
  });
  const single = pairs.length === 1 ? only : undefined;
  const utility = single ? single.utility : knownShare > 0 ? worth / knownShare : null;
  return {
    value,
    utility,
    available: total > 0 ? offered / total : 0,
    known: total > 0 ? knownShare / total : 0,
    delay: knownShare > 0 ? delay / knownShare : 0,
    supported: total > 0 ? supported / total : 0,
    steps,
    now: knownShare > 0 && Number.isFinite(now) ? now / knownShare : null,
    taken: false,
    best: false,
    low: single?.low ?? null,
    high: single?.high ?? null,
    probability: single?.probability ?? null,
    leads: [...leads].map(([node, share]) => [node, share / knownShare] as [number, number])
      .sort((a, b) => b[1] - a[1]),
    notes: single ? single.notes : neverTaken(decision, value, known),
  };
}

function neverTaken(decision: string, value: Value, known: State | null): string[] {
  return report.states!.neverTaken
    .filter(([made, taken, variable, at]) =>
      made === decision && same(taken, value) && known !== null && variable in known &&
      same(at, known[variable]!))
    .map(([, , , , text]) => text);
}

export interface Influence {
  variable: string;
  value: Value;
  /** The nearest other value that changes the decision, and what is decided then. */
  change: { value: Value; decided: Value } | null;
  /** Whether all other values were tried. */
  all: boolean;
}

const TRIED = 300; // other values of a variable, the nearest

/** What is said of a variable that does not decide. */
export function unchanged(found: Influence): string {
  return found.all ? "no other value changes the decision" : "no value near it changes the decision";
}

/** What each variable of a state decides: one is changed at a time. */
export function influences(known: State, left: number | null): Influence[] {
  const decision = nextDecision(known);
  const here = answer(known, left);
  const made = here && taken(here)?.value;
  if (!decision || made === undefined || made === null) return [];
  const found: Influence[] = [];
  for (const variable of report.variables) {
    const value = known[variable.name];
    if (variable.part !== "state" || value === undefined) continue;
    const tried = [...(variable.values ?? variable.tried ?? [])];
    if (typeof value === "number") {
      tried.sort((a, b) => Math.abs(Number(a) - value) - Math.abs(Number(b) - value));
    }
    let change: Influence["change"] = null;
    for (const other of tried.slice(0, TRIED)) {
      if (same(other, value)) continue;
      const found = answer({ ...known, [variable.name]: other }, left);
      const decided = found && taken(found)?.value;
      if (decided !== undefined && decided !== null && !same(decided, made)) {
        change = { value: other, decided };
        break;
      }
    }
    found.push({ variable: variable.name, value, change, all: tried.length <= TRIED });
  }
  return found;
}
