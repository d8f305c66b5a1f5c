import { useMemo, useState } from "preact/hooks";

import { report, type StateNode, type Tree } from "./data";
import { nodeAt } from "./later";
import { LaterNote, StepsLeft } from "./left";
import { left, showNode } from "./store";
import { alike, decidedText, number, percent, plural, shown, steps } from "./words";

const ROWS = 300;

export function Policy() {
  return (
    <>
      <section aria-labelledby="about-tree">
        <h2 id="about-tree">The policy as a decision tree</h2>
        <InWords />
        {report.model.horizon !== null && report.later.length > 0 && (
          <p class="aside">At the start of an episode; the table below has later steps, too.</p>
        )}
      </section>
      <section aria-labelledby="about-table">
        <h2 id="about-table">The policy as a table</h2>
        <Table />
      </section>
    </>
  );
}

function InWords() {
  const { tree } = report;
  if (!tree) return <p>This model has too many states for a small tree.</p>;
  if (tree.decision) return <p>Always <strong>{tree.decision}</strong>.</p>;
  const agrees = tree.agrees!;
  return (
    <>
      <p>
        {agrees > 0.9999
          ? "The tree agrees with the policy in all states."
          : <>A simplification: it agrees with the policy in {percent(agrees)} of all logged
              steps. {agrees < 0.8 && "The policy is too complex for a small tree: use the table, or query a state."}</>}
      </p>
      <ul class="tree"><Branch tree={tree} /></ul>
    </>
  );
}

function Branch(props: { tree: Tree }) {
  const { tree } = props;
  if (tree.decision !== undefined) {
    return (
      <li class="leaf">
        <strong>{tree.decision}</strong>{" "}
        <small>
          {plural(Math.round(tree.steps!), "step")}
          {tree.share! < 0.9995 && `, agrees in ${percent(tree.share)}`}
        </small>
      </li>
    );
  }
  return (
    <>
      <li><span>If {tree.question}</span><ul><Branch tree={tree.yes!} /></ul></li>
      <li><span>otherwise</span><ul><Branch tree={tree.no!} /></ul></li>
    </>
  );
}

type Key = string;

function cell(node: StateNode, key: Key): string | number | null {
  if (key === "value") return node.value;
  if (key === "visits") return node.visits;
  if (key === "steps") return node.steps;
  if (key in node.decided) return shown(node.decided[key]!);
  const text = node.state[key] ?? "";
  return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
}

function compared(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b));
}

/** Rows that have all words of a search, each anywhere in the row. */
export function matches(node: StateNode, words: string[]): boolean {
  const text = `${node.text} ${Object.values(node.state).join(" ")} ${decidedText(node.decided)} ${
    node.tooClose ? "too close to call" : ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function Table() {
  const [search, setSearch] = useState("");
  const [sort, setSort] = useState<{ key: Key; down: boolean } | null>(null);
  const names = Object.keys(report.nodes[0]?.state ?? {});
  const keys = [...names, ...report.model.decisions, "value", "visits", "steps"];
  const rows = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const found = report.nodes.map((node) => nodeAt(node, left.value))
      .filter((node) => matches(node, words));
    if (!sort) return found;
    const sign = sort.down ? -1 : 1;
    return [...found].sort((a, b) => sign * compared(cell(a, sort.key), cell(b, sort.key)));
  }, [search, sort, left.value]);
  const as = useMemo(() => alike(rows.map((node) => node.value)), [rows]);
  const by = (key: Key) =>
    setSort((now) => (now?.key === key ? (now.down ? null : { key, down: true }) : { key, down: false }));
  return (
    <>
      <div class="tools">
        <label>
          Search{" "}
          <input
            type="search"
            value={search}
            placeholder="values, decisions, “too close”"
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        {report.model.decisions.length === 1 && <StepsLeft />}
        <span role="status">{plural(rows.length, "state")}</span>
      </div>
      <LaterNote />
      <div class="scroll tall">
        <table>
          <thead>
            <tr>
              {keys.map((key) => (
                <th
                  class={isNumber(key) ? "n" : ""}
                  aria-sort={sort?.key === key ? (sort.down ? "descending" : "ascending") : "none"}
                >
                  <button type="button" class="sort" onClick={() => by(key)}>
                    {key}{sort?.key === key ? (sort.down ? " ↓" : " ↑") : ""}
                  </button>
                </th>
              ))}
              <th></th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, ROWS).map((node) => (
              <tr key={node.id}>
                {names.map((name) => <td>{node.state[name] ?? ""}</td>)}
                {report.model.decisions.map((name) => (
                  <td><strong>{name in node.decided ? shown(node.decided[name]!) : "–"}</strong></td>
                ))}
                <td class="n">{as(node.value)}</td>
                <td class="n">{steps(node.visits)}</td>
                <td class="n">{steps(node.steps)}{node.steps < report.coverage.few && <span class="mark"> few</span>}</td>
                <td>
                  {node.tooClose && <span class="mark">too close to call</span>}{" "}
                  <button type="button" class="link" onClick={() => showNode(node.id)}>why</button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > ROWS && <p>The first {number(ROWS)} are shown; search for others.</p>}
      <p class="aside">
        Each row is an interface node: states that behave alike. “visits” are the logged steps in
        it, “steps” those with the recommended action.
      </p>
    </>
  );
}

function isNumber(key: Key): boolean {
  return ["value", "visits", "steps"].includes(key);
}
