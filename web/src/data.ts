// What a page is made of. The Python package writes it, see rspmn/report/page_data.py.

export type Value = string | number | boolean;
export type State = Record<string, Value>;

export interface Interval {
  value: number | null;
  low: number | null;
  high: number | null;
}

export interface Honest {
  point: number;
  low: number;
  high: number;
  promise: number;
  optimism: number;
  kept: boolean;
  caveats: string[];
}

export interface Variable {
  name: string;
  kind: string;
  part: "state" | "later" | "decision" | "utility";
  values?: Value[];
  low?: number;
  high?: number;
  tried?: number[];
}

export interface Action {
  value: Value;
  utility: number | null;
  known: number;
  delay: number;
  supported: number | null;
  steps: number;
  taken: boolean;
  best: boolean;
  now: number | null;
  low: number | null;
  high: number | null;
  probability: number | null;
  leads: [number, number][];
  notes: string[];
}

export interface Point {
  decision: string;
  tooClose: boolean;
  rivals: Value[];
  actions: Action[];
}

/** A formula over the state, see rspmn/expressions/formula.py. */
export type Formula = number | [string, ...(Formula | string | string[])[]];

/** Where a value of a decision is available (a law), or where it is forbidden. */
export interface Condition {
  decision: string;
  value: string;
  variables: string[];
  formula: Formula | null;
  is_law: boolean;
}

/** What all actions are worth with fewer steps to go, in the order of the points. */
export interface Later {
  left: number;
  worth: (number | null)[];
  known: number | number[];
  delay: number | number[];
  supported: number | null | (number | null)[];
}

export interface StateNode {
  id: number;
  text: string;
  state: Record<string, string>;
  visits: number;
  start: number;
  decided: State;
  value: number | null;
  steps: number;
  supported: number | null;
  point: number | null;
  tooClose: boolean;
}

export interface Leaf {
  family: string;
  values?: Value[];
  probabilities?: number[];
  other?: number;
  edges?: number[];
  masses?: number[];
  knots?: number[];
  densities?: number[];
  centre?: number;
  scale?: number;
  low?: number;
  high?: number;
  mode?: number;
  log_mode?: number;
}

export interface States {
  variables: string[];
  leaves: Leaf[];
  ways: Record<string, number[][]>;
  visits: Record<string, number>;
  starts: Record<string, number>;
  neverTaken: [string, Value, string, Value, string][];
}

export interface Tree {
  question?: string;
  yes?: Tree;
  no?: Tree;
  decision?: string;
  share?: number;
  steps?: number;
  agrees?: number;
  leaves?: number;
}

export interface Step {
  node: number | null;
  values: State;
  earned: number | null;
}

export interface Episode {
  share: number;
  ending: string;
  steps: Step[];
}

export interface Spread {
  least: number;
  lower: number;
  median: number;
  upper: number;
  most: number;
}

export interface Report {
  form: number;
  title: string;
  model: {
    kind: "rspmn" | "spmn";
    version: string;
    decisions: string[];
    utility: string;
    setAside: string[];
    interfaceNodes: number;
    templateNodes: number;
    loggedSteps: number;
    ends: boolean;
    horizon: number | null;
    discount: number;
    laws: string[];
    conditions: Condition[];
    file?: string;
    bytes?: number;
    sha256?: string;
  };
  variables: Variable[];
  warnings: { level: "error" | "warning" | "note"; text: string; advice: string }[];
  worth: {
    steps: number;
    practice: Interval | null;
    policy: Honest | null;
    difference: Interval | null;
    better?: number;
    agreement?: number;
    promise: number | null;
    byHorizon: { steps: number; meu: number | null; practice: number | null }[];
  };
  coverage: {
    visits: Spread;
    stepsBehindRecommendation: Spread;
    few: number;
    nodesWithFew: number;
    shareWithFew: number;
    nodesTooClose: number;
    shareTooClose: number;
    nodesWithoutDecision: number;
    actionsPerNode: number | null;
  };
  log: null | {
    episodes: number;
    steps: number;
    lengths: Spread;
    endings: Record<string, number>;
    decisions: Record<string, { value: Value; steps: number }[]>;
    differs?: {
      state: Record<string, string>;
      visits: number;
      practice: string;
      practiceShare: number;
      recommended: string;
      agreement: number;
      gain: number;
      gainPerVisit: number;
    }[];
  };
  leftOut: number;
  end: number | null;
  unknown: number | null;
  bound: number;
  /** How many logged steps an action needs, or which share of those of the most frequent one. */
  support: [number | null, number] | null;
  nodes: StateNode[];
  /** Why actions have no intervals; nothing if they have. */
  noIntervals: string;
  points: Record<string, Point>;
  later: Later[];
  states: States | null;
  tree: Tree | null;
  episodes: null | { steps: number; policy: Episode[]; practice: Episode[] };
  /** Whether the page comes from a server that can be asked. */
  live?: boolean;
}

export const report: Report = JSON.parse(document.getElementById("data")!.textContent!);

export const nodeById = new Map(report.nodes.map((node) => [node.id, node]));

/** The name of a node that may follow: a state, the end, or something that is not in the page. */
export function nodeText(id: number): string {
  if (id === report.end) return "the episode ends";
  if (id === report.unknown) return "not known: the log does not say";
  return nodeById.get(id)?.text ?? `interface node ${id}, not in this page`;
}
