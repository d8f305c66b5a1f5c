// Formulas over the state: the rules are those of rspmn/expressions/formula.py.
import type { Condition, Formula, State, Value } from "./data";

type Found = number | string | null;

/** The value of a formula in a state; null is missing. */
export function formulaValue(formula: Formula, state: Record<string, Value | null>): Found {
  if (typeof formula === "number") return formula;
  const [kind, ...parts] = formula;
  if (kind === "column") return plain(state[parts[0] as string]);
  const operands = kind === "in" ? parts.slice(0, 1) : parts;
  const values = operands.map((part) => formulaValue(part as Formula, state));
  const [one, other] = values as [Found, Found];
  if (kind === "lacks") return Number(one === null);
  if (kind === "filled") return one ?? 0;
  if (kind === "both" && values.includes(0)) return 0;
  if (values.includes(null)) return null;
  const a = Number(one), b = Number(other);
  switch (kind) {
    case "+": return a + b;
    case "-": return a - b;
    case "*": return a * b;
    case "/": return a / b;
    case "==": return Number(a === b);
    case "!=": return Number(a !== b);
    case "<": return Number(a < b);
    case "<=": return Number(a <= b);
    case ">": return Number(a > b);
    case ">=": return Number(a >= b);
    case "in": return Number((parts[1] as string[]).includes(String(one)));
    case "same": return Number(one === other);
    case "both": return 1;
    case "not": return Number(one === 0);
    case "number": return a;
  }
  throw new Error(`a formula has the unknown operation ${kind}`);
}

function plain(value: Value | null | undefined): Found {
  if (value === undefined || value === null) return null;
  return typeof value === "boolean" ? Number(value) : value;
}

/** Whether a condition says that a decision cannot, or must not, have a value in a state. */
export function forbids(condition: Condition, decision: string, value: Value, state: State): boolean {
  if (condition.decision !== decision || condition.value !== String(value)) return false;
  if (condition.variables.some((name) => state[name] === undefined)) return !condition.is_law;
  if (condition.formula === null) return true;
  return (formulaValue(condition.formula, state) === 0) === condition.is_law;
}
