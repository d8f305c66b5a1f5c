import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Actions } from "./actions";
import { influences, unchanged } from "./answer";
import { decisions, highest, lowest, ofDecision, ofValue, type By } from "./colours";
import { nodeById, report, type State, type StateNode } from "./data";
import { StateGraph } from "./graph";
import { nodeAt, pointAt } from "./later";
import { LaterNote, StepsLeft } from "./left";
import { matches } from "./policy";
import { left, selected, theme } from "./store";
import { decidedText, number, percent, plural, shown, steps } from "./words";

const GRAPH = report.model.kind === "rspmn";
const MOST = 400; // nodes that are drawn at first
const MOST_ARROWS = 420; // arrows between them
const byVisits = [...report.nodes].sort((a, b) => b.visits - a.visits || a.id - b.id);

/** How many nodes are drawn at first: as many as stay readable, the most visited. */
function drawnFirst(): number {
  let arrows = 0;
  const most = byVisits.findIndex((node) => {
    const actions = node.point === null ? [] : report.points[node.point]?.actions ?? [];
    arrows += actions.find((action) => action.taken)?.leads.length ?? 0;
    return arrows > MOST_ARROWS;
  });
  return Math.min(MOST, most < 0 ? byVisits.length : Math.max(12, most));
}

export function States() {
  const [by, setBy] = useState<By>("value");
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(drawnFirst);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const drawn = useMemo(() => byVisits.slice(0, most), [most]);
  const found = useMemo(() => byVisits.filter((node) => matches(node, words)), [search]);
  const node = selected.value === null ? undefined : nodeById.get(selected.value);
  return (
    <section class="states" aria-labelledby="about-states">
      <h2 id="about-states">{GRAPH ? "States and transitions under the policy" : "States"}</h2>
      <p>
        {GRAPH
          ? <>Each circle is a group of states that behave alike; its size is the number of logged
              steps. Arrows follow the recommended action. Episodes start at nodes with a double rim.</>
          : "Parts of the model: rows of the table that behave alike."}
        {report.leftOut > 0 && (
          <strong> Only the {number(report.nodes.length)} most visited of{" "}
            {number(report.model.interfaceNodes)} are in this page.</strong>
        )}
      </p>
      <div class="tools">
        <label>
          Search{" "}
          <input
            type="search" value={search} placeholder="values or decisions"
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        {GRAPH && <label>
          Colour{" "}
          <select value={by} onChange={(event) => setBy(event.currentTarget.value as By)}>
            <option value="value">by value</option>
            <option value="decision">by decision</option>
          </select>
        </label>}
        {GRAPH && byVisits.length > 12 && (
          <label>
            The{" "}
            <input
              type="number" class="short" min={1} max={byVisits.length} value={most}
              onChange={(event) => setMost(clipped(Number(event.currentTarget.value)))}
            />{" "}
            most visited of {number(byVisits.length)}
          </label>
        )}
        <StepsLeft />
      </div>
      {GRAPH && words.length > 0 && <Found nodes={found} />}
      <div class="both">
        <div>
          {GRAPH ? <><Graph nodes={drawn} by={by} /><Legend by={by} /></> : <Found nodes={found} all />}
        </div>
        <aside aria-live="polite" aria-label="The selected state">
          {node ? <Details node={node} /> : (
            <p class="calm">Select a state: click it, search for it{GRAPH && ", or focus the graph and use the arrow keys"}.</p>
          )}
        </aside>
      </div>
    </section>
  );
}

function clipped(count: number): number {
  return Math.max(1, Math.min(byVisits.length, Math.round(count) || 1));
}

function Found(props: { nodes: StateNode[]; all?: boolean }) {
  const most = props.all ? 200 : 12;
  return (
    <ul class={props.all ? "found list" : "found"} aria-label="States found">
      {props.nodes.slice(0, most).map((node) => (
        <li>
          <button type="button" class="link" onClick={() => (selected.value = node.id)}>
            {node.text}
          </button>{" "}
          <small>{decidedText(node.decided)}</small>
        </li>
      ))}
      <li role="status">{props.nodes.length > most ? `and ${number(props.nodes.length - most)} more` : plural(props.nodes.length, "state")}</li>
    </ul>
  );
}

function Graph(props: { nodes: StateNode[]; by: By }) {
  const place = useRef<HTMLDivElement>(null);
  const graph = useRef<StateGraph | null>(null);
  useEffect(() => {
    const made = new StateGraph(place.current!, props.nodes, props.by, (id) => (selected.value = id));
    graph.current = made;
    made.show(selected.value);
    place.current!.dataset.ready = String(made.size);
    performance.mark("graph");
    const media = matchMedia("(prefers-color-scheme: dark)");
    const restyle = () => made.restyle();
    media.addEventListener("change", restyle);
    const stop = theme.subscribe(restyle);
    return () => {
      media.removeEventListener("change", restyle);
      stop();
      made.destroy();
      graph.current = null;
    };
  }, [props.nodes]);
  useEffect(() => graph.current?.recolour(props.nodes, props.by), [props.by]);
  useEffect(() => selected.subscribe((id) => graph.current?.show(id)), []);
  const step = (by: number) => {
    const now = props.nodes.findIndex((node) => node.id === selected.value);
    const next = now < 0 ? 0 : (now + by + props.nodes.length) % props.nodes.length;
    selected.value = props.nodes[next]!.id;
  };
  const keys: Record<string, () => void> = {
    ArrowRight: () => step(1), ArrowDown: () => step(1),
    ArrowLeft: () => step(-1), ArrowUp: () => step(-1),
    Escape: () => (selected.value = null),
    "+": () => graph.current?.zoom(1.3), "-": () => graph.current?.zoom(1 / 1.3),
    "0": () => graph.current?.fit(),
  };
  const press = (event: KeyboardEvent) => {
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  return (
    <div class="frame">
      <div
        class="graph" ref={place} tabIndex={0} role="application" onKeyDown={press}
        aria-label="Graph of states. Arrow keys select a state, plus and minus zoom, 0 shows all, Escape clears the selection."
      />
      <div class="zoom">
        <button type="button" aria-label="Zoom in" onClick={() => graph.current?.zoom(1.3)}>+</button>
        <button type="button" aria-label="Zoom out" onClick={() => graph.current?.zoom(1 / 1.3)}>−</button>
        <button type="button" onClick={() => graph.current?.fit()}>All</button>
      </div>
    </div>
  );
}

function Legend(props: { by: By }) {
  if (props.by === "value") {
    const stops = Array.from({ length: 9 }, (_, k) => ofValue(lowest + ((highest - lowest) * k) / 8));
    return (
      <p class="legend">
        {number(lowest)} <span class="ramp" style={{ background: `linear-gradient(to right, ${stops.join(",")})` }} />{" "}
        {number(highest)} expected {report.model.utility}
      </p>
    );
  }
  return (
    <p class="legend">
      {decisions.slice(0, 8).map((text, k) => (
        <><span class="key" style={{ background: ofDecision(text) }} /> {k === 7 && decisions.length > 8 ? "others" : text} </>
      ))}
    </p>
  );
}

/** The state of a node, if it is one: every variable has one value. */
function stateOf(node: StateNode): State | null {
  const found: State = {};
  for (const variable of report.variables) {
    if (variable.part !== "state") continue;
    const text = node.state[variable.name];
    const value = variable.values?.find((each) => shown(each) === text);
    if (value === undefined) return null;
    found[variable.name] = value;
  }
  return found;
}

function Details(props: { node: StateNode }) {
  const node = nodeAt(props.node, left.value);
  const point = node.point === null ? undefined : pointAt(node.point, left.value);
  const state = stateOf(node);
  const changes = useMemo(
    () => (state && report.states ? influences(state, left.value) : []), [node.id, left.value],
  );
  return (
    <>
      <h3>{node.text}</h3>
      <p>
        Recommended: <strong>{decidedText(node.decided)}</strong>, worth {number(node.value)}.
        {node.tooClose && <> <span class="mark">Too close to call</span>: {point?.rivals.map(shown).join(", ") || "another action"} may be as good.</>}
      </p>
      <p class="aside">
        {node.visits > 0 && <>Logged steps here: {steps(node.visits)}. </>}
        {node.start > 0 && <>{percent(node.start)} of episodes start here. </>}
        {node.supported !== null && node.supported < 1 && <>Supported: {percent(node.supported)}. </>}
        Interface node {node.id}.
      </p>
      <LaterNote />
      {point ? <Actions decision={point.decision} actions={point.actions} here={node.id} />
        : <p>No decision with a known outcome was logged here.</p>}
      {changes.length > 0 && (
        <>
          <h4>Effect of each variable</h4>
          <ul class="plain">
            {changes.map((each) => ({ ...each, each })).map(({ variable, value, change, each }) => (
              <li>
                {variable}={shown(value)}:{" "}
                {change ? <>{variable}={shown(change.value)} would change the decision to <strong>{shown(change.decided)}</strong></>
                  : unchanged(each)}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
