import { useMemo, useState } from "preact/hooks";

import { Actions, NodeLink } from "./actions";
import { answer, influences, knownBefore, nextDecision, taken, unchanged, type Answer } from "./answer";
import { report, type State, type Value, type Variable } from "./data";
import { LaterNote, StepsLeft } from "./left";
import { useServer } from "./live";
import { left } from "./store";
import { decidedText, number, percent, plural, shown, stateText } from "./words";

const START = Symbol("start");
type Asked = State | typeof START;

export function Ask() {
  const [entered, setEntered] = useState<Record<string, string>>(firstState);
  const [start, setStart] = useState(false);
  if (!report.states && !report.live) {
    return (
      <section>
        <h2>Query a state</h2>
        <p>This model is too large for queries in this page. Use the command
          line: <code>rspmn act MODEL --state NAME=VALUE</code>.</p>
      </section>
    );
  }
  const known = read(entered);
  const asked: Asked = start ? START : known;
  return (
    <section aria-labelledby="about-ask">
      <h2 id="about-ask">Query a state</h2>
      <p>Enter the known values; leave the others empty.{" "}
        {!report.live && "The answer is computed in this page."}</p>
      <form class="ask" onSubmit={(event) => event.preventDefault()}>
        {fields(known).map((variable) => (
          <Field
            variable={variable}
            text={entered[variable.name] ?? ""}
            disabled={start}
            enter={(text) => setEntered((all) => ({ ...all, [variable.name]: text }))}
          />
        ))}
        <StepsLeft />
        <label class="check">
          <input type="checkbox" checked={start} onChange={(event) => setStart(event.currentTarget.checked)} />
          {" "}at the start of an episode, before anything is observed
        </label>
      </form>
      <div aria-live="polite"><Answered asked={asked} /></div>
    </section>
  );
}

function firstState(): Record<string, string> {
  const visited = [...report.nodes].sort((a, b) => b.visits - a.visits)[0];
  const found: Record<string, string> = {};
  for (const variable of report.variables) {
    const value = parsed(variable, visited?.state[variable.name] ?? "");
    if (variable.part === "state" && value !== null && (variable.values?.includes(value) ?? true)) {
      found[variable.name] = shown(value);
    }
  }
  return found;
}

/** The variables known before the next decision; those of later decisions once one is made. */
function fields(known: State): Variable[] {
  const decision = nextDecision(known) ?? report.model.decisions.at(-1)!;
  const names = new Set([...knownBefore(decision)]);
  const later = report.model.decisions.length > 1;
  if (later) names.add(decision);
  const aside = report.model.setAside; // nothing depends on them
  return report.variables.filter(({ name }) => names.has(name) && !aside.includes(name));
}

function parsed(variable: Variable, text: string): Value | null {
  const exact = variable.values?.find((value) => shown(value) === text);
  if (exact !== undefined) return exact;
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const alike = variable.values?.filter((value) => shown(value).toLowerCase() === trimmed.toLowerCase());
  if (alike?.length === 1) return alike[0]!;
  const number = Number(trimmed);
  if (Number.isFinite(number)) return number;
  return variable.values ? trimmed : null;
}

function read(entered: Record<string, string>): State {
  const found: State = {};
  for (const variable of report.variables) {
    const value = parsed(variable, entered[variable.name] ?? "");
    const open = nextDecision(found);
    if (value === null || variable.part === "utility") continue;
    // What comes after a decision that is not made yet is not known.
    if (variable.part !== "state" && open !== undefined &&
        !knownBefore(open).includes(variable.name) && variable.name !== open) continue;
    found[variable.name] = value;
  }
  return found;
}

function Field(props: {
  variable: Variable;
  text: string;
  disabled: boolean;
  enter: (text: string) => void;
}) {
  const { variable, text } = props;
  const few = variable.values && variable.values.length <= 40;
  const id = `ask-${variable.name}`;
  const hint = variable.values ? undefined : `${number(variable.low)} to ${number(variable.high)}`;
  return (
    <label for={id}>
      <span>{variable.name}{variable.part === "decision" && " (made already)"}</span>
      {few ? (
        <select id={id} value={text} disabled={props.disabled} onChange={(event) => props.enter(event.currentTarget.value)}>
          <option value="">{variable.part === "decision" ? "to be decided" : "not known"}</option>
          {variable.values!.map((value) => <option value={shown(value)}>{shown(value)}</option>)}
        </select>
      ) : (
        <input
          id={id}
          value={text}
          disabled={props.disabled}
          placeholder={hint ?? "not known"}
          inputMode={variable.values ? "text" : "decimal"}
          onInput={(event) => props.enter(event.currentTarget.value)}
        />
      )}
    </label>
  );
}

function Answered(props: { asked: Asked }) {
  const known = props.asked === START ? null : (props.asked as State);
  const here = useMemo(() => answer(known, left.value), [JSON.stringify(known), left.value]);
  const served = useServer(known, left.value);
  const found = served ?? here;
  if (!found) {
    const open = nextDecision(known ?? {}) !== undefined;
    return <p>{open ? "Waiting for the server." : "No decision is left to make."}</p>;
  }
  if (!found.places.length) {
    return (
      <p class="warnings warning">
        {known && Object.keys(known).length ? stateText(known) : "This state"} was never
        observed{known && Object.keys(known).length > 1 ? " together" : ""}: no action is known.
      </p>
    );
  }
  const best = taken(found);
  return (
    <>
      <h3>
        {best ? <>{found.decision}: <strong>{shown(best.value)}</strong></> : "No action is known"}
      </h3>
      {!served && <LaterNote />}
      {served && <p class="calm">Answered by the server, with intervals.</p>}
      <Doubts found={found} />
      <Actions
        decision={found.decision}
        actions={found.actions.filter((action) => action.available > 0)}
        here={found.certain ? found.places[0]!.node : undefined}
      />
      <h4>Interface nodes of the state</h4>
      <ul class="plain">
        {found.places.slice(0, 6).map(({ node, probability }) => (
          <li>{percent(probability)} <NodeLink id={node} /></li>
        ))}
        {found.places.length > 6 && <li>and {plural(found.places.length - 6, "other state")}</li>}
      </ul>
      {known && <Decides known={known} />}
    </>
  );
}

function Doubts(props: { found: Answer }) {
  const { found } = props;
  const doubts = [];
  const unseen = found.averagedOver.filter((name) => !report.model.setAside.includes(name));
  if (unseen.length) {
    doubts.push(`Not given: ${unseen.join(", ")}; averaged over logged values`);
  }
  if (found.leftOut > 1e-9) {
    doubts.push(`${percent(found.leftOut)} of the probability is on states that are not in this page, which has only the most visited ones: use rspmn act`);
  }
  if (!found.certain && report.nodes.some((node) => node.tooClose || node.point !== null) && found.places.length > 1) {
    doubts.push("Several interface nodes are possible: intervals are not available");
  }
  return doubts.length ? <ul class="warnings">{doubts.map((text) => <li class="note">{text}.</li>)}</ul> : null;
}

function Decides(props: { known: State }) {
  const found = useMemo(
    () => influences(props.known, left.value), [JSON.stringify(props.known), left.value],
  );
  if (!found.length) return null;
  return (
    <>
      <h4>Effect of each variable</h4>
      <ul class="plain">
        {found.map((each) => ({ ...each, each })).map(({ variable, value, change, each }) => (
          <li>
            {variable}={shown(value)}:{" "}
            {change
              ? <>{variable}={shown(change.value)} would change the decision to <strong>{decidedText({ made: change.decided })}</strong></>
              : unchanged(each)}
          </li>
        ))}
      </ul>
    </>
  );
}
