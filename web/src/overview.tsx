import * as Plot from "@observablehq/plot";

import { Chart } from "./chart";
import { report, type Spread } from "./data";
import { alike, drawnPercent, number, percent, plural, range, shown, steps } from "./words";

export function Overview() {
  return (
    <>
      <Warnings />
      <Worth />
      <ByHorizon />
      <Coverage />
      {report.log?.differs && report.log.differs.length > 0 && <Differs />}
      <Card />
    </>
  );
}

const LEVELS = { error: "Error", warning: "Warning", note: "Note" };

function Warnings() {
  const grave = report.warnings.filter((each) => each.level !== "note");
  const notes = report.warnings.filter((each) => each.level === "note");
  return (
    <section aria-labelledby="about-warnings">
      <h2 id="about-warnings">Before you use it</h2>
      {grave.length === 0 && <p class="calm">No problems found.</p>}
      <ul class="warnings">
        {grave.map((each) => (
          <li class={each.level}>
            <strong>{LEVELS[each.level]}.</strong> {sentenceCase(each.text)}. <em>{each.advice}.</em>
          </li>
        ))}
      </ul>
      {notes.length > 0 && (
        <details>
          <summary>{plural(notes.length, "note")}</summary>
          <ul class="warnings">
            {notes.map((each) => (
              <li class="note">{sentenceCase(each.text)}. <em>{each.advice}.</em></li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function sentenceCase(text: string): string {
  return /^[a-z]+ /.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
}

function Worth() {
  const { worth, model } = report;
  const { practice, policy, difference } = worth;
  const rows = [
    practice && { name: "Current practice", ...practice },
    policy
      ? { name: "Policy, honest value", value: policy.point, low: policy.low, high: policy.high }
      : { name: "The policy, as promised", value: worth.promise, low: null, high: null },
  ].filter((row) => row !== null && row.value !== null);
  const as = alike(rows.flatMap((row) => [row!.value, row!.low, row!.high]));
  const over = model.kind === "spmn" ? "" : ` over ${plural(worth.steps, "step")}`;
  return (
    <section aria-labelledby="about-worth">
      <h2 id="about-worth">Value of the policy</h2>
      <p class="lead">{sentence(over)}</p>
      <Chart
        deps={[]}
        label={`Values of practice and policy${over}, with intervals`}
        options={() => ({
          height: 62 + 34 * rows.length,
          marginLeft: 150,
          marginRight: 30,
          x: { label: `expected ${model.utility}${over}`, grid: true, nice: true },
          y: { label: null, domain: rows.map((row) => row!.name), tickSize: 0 },
          marks: [
            Plot.ruleY(rows.filter((row) => row!.low !== null), {
              x1: "low", x2: "high", y: "name", stroke: "var(--accent)", strokeWidth: 5,
              strokeOpacity: 0.4, strokeLinecap: "round",
            }),
            Plot.dot(rows, { x: "value", y: "name", fill: "var(--accent)", r: 5 }),
          ],
        })}
      />
      <table class="small">
        <thead>
          <tr><th></th><th class="n">value</th><th class="n">interval</th></tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              <th scope="row">{row!.name}</th>
              <td class="n">{as(row!.value)}</td>
              <td class="n">{range(row!.low, row!.high, as) || "–"}</td>
            </tr>
          ))}
          {difference && (
            <tr>
              <th scope="row">Difference</th>
              <td class="n">{as(difference.value)}</td>
              <td class="n">{range(difference.low, difference.high, as)}</td>
            </tr>
          )}
        </tbody>
      </table>
      <p class="aside">
        {policy && (
          <>The honest value corrects the bias of choosing the best of many estimates. The
            uncorrected value (MEU) is {number(policy.promise)}. </>
        )}
        90 % intervals.
        {worth.agreement !== undefined && (
          <> The recommended action was taken in {percent(worth.agreement)} of the logged steps.</>
        )}
      </p>
    </section>
  );
}

function sentence(over: string): string {
  const { practice, policy, better, promise } = report.worth;
  const value = policy ? policy.point : promise;
  if (value === null) return "The value of the policy is unknown.";
  const start = policy ? "The honest value" : "The value in the model (MEU)";
  const first = `${start} of the policy${over} is ${number(value)}`;
  if (!practice || practice.value === null) return `${first}.`;
  const beside = `${first}; current practice earns ${number(practice.value)}.`;
  if (better === undefined) return beside;
  return `${beside} The policy is better with probability ${drawnPercent(better)}.`;
}

function ByHorizon() {
  const { byHorizon } = report.worth;
  if (byHorizon.length < 2) return null;
  const rows = byHorizon.flatMap((each) => [
    { steps: each.steps, value: each.meu, what: "maximum expected utility" },
    { steps: each.steps, value: each.practice, what: "current practice" },
  ]).filter((row) => row.value !== null);
  const last = rows.slice(-2);
  return (
    <section aria-labelledby="about-horizons">
      <h2 id="about-horizons">Value by number of steps</h2>
      <p>
        Values from the start of an episode, of the best decisions and of current practice.
      </p>
      <Chart
        deps={[]}
        label="Maximum expected utility and value of current practice by number of steps"
        options={(width) => ({
          height: 240,
          marginLeft: 56,
          marginRight: width > 560 ? 165 : 20,
          x: { label: "steps", interval: byHorizon.length < 20 ? 1 : undefined, ticks: 8, tickFormat: "d" },
          y: { label: `expected ${report.model.utility}`, grid: true, nice: true },
          marks: [
            Plot.ruleY([0], { strokeOpacity: 0.3 }),
            Plot.line(rows, {
              x: "steps", y: "value", z: "what", strokeWidth: 2,
              stroke: (row) => colour(row.what),
            }),
            Plot.text(width > 560 ? last : [], {
              x: "steps", y: "value", text: "what", textAnchor: "start", dx: 8,
              fill: (row) => colour(row.what),
            }),
            Plot.tip(rows, Plot.pointer({
              x: "steps", y: "value", title: (row) => `${row.what}\n${plural(row.steps, "step")}: ${number(row.value)}`,
            })),
          ],
          color: { type: "identity" },
        })}
      />
      <p class="legend narrow">
        <span class="key" style={{ background: colour("maximum expected utility") }} /> maximum
        expected utility{" "}
        <span class="key" style={{ background: colour("current practice") }} /> current practice
      </p>
    </section>
  );
}

function colour(what: string): string {
  return what === "current practice" ? "var(--second)" : "var(--accent)";
}

function Coverage() {
  const { coverage, log, nodes } = report;
  const logged = nodes.map((node) => node.visits).filter((count) => count > 0);
  const visits = logged.map((count) => Math.max(1, count));
  const least = logged.some((count) => count < 1) ? "; 1 or less at the left" : "";
  return (
    <section aria-labelledby="about-coverage">
      <h2 id="about-coverage">Coverage of the log</h2>
      <dl class="facts">
        {log && <Fact name="Episodes" value={`${number(log.episodes)}, of ${spread(log.lengths)} steps`} />}
        {log && (
          <Fact
            name="Ends of episodes"
            value={Object.entries(log.endings).filter(([, count]) => count > 0)
              .map(([name, count]) => `${number(count)} ${name}`).join(", ")}
          />
        )}
        <Fact name="Logged steps in a state" value={spread(coverage.visits)} />
        <Fact name="Logged steps of the recommended action" value={spread(coverage.stepsBehindRecommendation)} />
        <Fact
          name={`States with fewer than ${coverage.few}`}
          value={`${number(coverage.nodesWithFew)} of ${number(nodes.length)}, ${percent(coverage.shareWithFew)} of the steps`}
        />
        <Fact
          name="States too close to call"
          value={`${number(coverage.nodesTooClose)} of ${number(nodes.length)}, ${percent(coverage.shareTooClose)} of the steps`}
        />
      </dl>
      {visits.length > 2 && (
        <Chart
          deps={[]}
          label="Number of interface nodes by number of logged steps"
          options={() => ({
            height: 170,
            marginLeft: 56,
            x: { label: `logged steps in a state${least}`, type: "log", tickFormat: "~s" },
            y: { label: "states", grid: true, tickFormat: wholeNumber },
            marks: [
              Plot.rectY(visits, {
                ...Plot.binX({ y: "count" }, {
                  x: { value: (count: number) => count, thresholds: logThresholds(visits) },
                }),
                fill: "var(--accent)", fillOpacity: 0.75, insetLeft: 1, insetRight: 1,
              } as Plot.RectYOptions),
              Plot.ruleY([0]),
            ],
          })}
        />
      )}
      {log && Object.entries(log.decisions).map(([name, counts]) => (
        <Chart
          deps={[]}
          label={`Number of logged steps by value of ${name}`}
          options={() => ({
            height: 50 + 24 * counts.length,
            marginLeft: 130,
            x: { label: "logged steps", grid: true },
            y: { label: name, domain: counts.map((each) => shown(each.value)), tickSize: 0 },
            marks: [
              Plot.barX(counts, {
                x: "steps", y: (each) => shown(each.value), fill: "var(--second)", fillOpacity: 0.75,
                inset: 3,
              }),
              Plot.ruleX([0]),
            ],
          })}
        />
      ))}
    </section>
  );
}

/** A tick of a count: those between two whole numbers have no text. */
function wholeNumber(tick: number): string {
  return Number.isInteger(tick) ? number(tick) : "";
}

function logThresholds(counts: number[]): number[] {
  const low = Math.log10(Math.min(...counts)), high = Math.log10(Math.max(...counts) + 1);
  return Array.from({ length: 25 }, (_, k) => 10 ** (low + ((high - low) * k) / 24));
}

function spread(found: Spread): string {
  if (found.least === undefined) return "–";
  if (found.least === found.most) return steps(found.least);
  return `${steps(found.least)} to ${steps(found.most)}, median ${steps(found.median)}`;
}

function Fact(props: { name: string; value: string }) {
  return <div><dt>{props.name}</dt><dd>{props.value}</dd></div>;
}

function Differs() {
  const rows = report.log!.differs!;
  return (
    <section aria-labelledby="about-differs">
      <h2 id="about-differs">Largest differences to current practice</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              {Object.keys(rows[0]!.state).map((name) => <th>{name}</th>)}
              <th class="n">steps</th><th>practice</th><th>policy</th>
              <th class="n">agreement</th><th class="n">gain per visit</th>
              <th class="n">gain per episode</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>
                {Object.values(row.state).map((value) => <td>{value}</td>)}
                <td class="n">{steps(row.visits)}</td>
                <td>{row.practice} <small>{percent(row.practiceShare)}</small></td>
                <td>{row.recommended}</td>
                <td class="n">{percent(row.agreement)}</td>
                <td class="n">{number(row.gainPerVisit)}</td>
                <td class="n">{number(row.gain)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const PARTS = { state: "known before", later: "known later", decision: "decision", utility: "utility" };

function Card() {
  const { model, variables } = report;
  return (
    <section aria-labelledby="about-card">
      <h2 id="about-card">About the model</h2>
      <dl class="facts">
        {model.file && <Fact name="File" value={`${model.file}, ${number(model.bytes)} bytes`} />}
        {model.sha256 && <div><dt>SHA-256</dt><dd><code>{model.sha256}</code></dd></div>}
        <Fact name="Model" value={model.kind === "rspmn" ? "recurrent sum-product-max network" : "sum-product-max network"} />
        <Fact
          name={model.kind === "rspmn" ? "Interface nodes: states that behave alike" : "Parts: rows that behave alike"}
          value={number(model.interfaceNodes)}
        />
        {model.loggedSteps > 0 && <Fact name={model.kind === "rspmn" ? "Logged steps" : "Rows"} value={number(model.loggedSteps)} />}
        {model.kind === "rspmn" && <Fact name="Episodes end" value={model.ends ? "yes" : "no: no logged episode terminated"} />}
        {model.setAside.length > 0 && <Fact name="Ignored, as nothing depends on them" value={model.setAside.join(", ")} />}
        {model.laws.length > 0 && <Fact name="Laws" value={model.laws.join("; ")} />}
      </dl>
      <div class="scroll">
        <table>
          <thead><tr><th>variable</th><th>part</th><th>kind</th><th>values</th></tr></thead>
          <tbody>
            {variables.map((each) => (
              <tr>
                <th scope="row">{each.name}</th>
                <td>{PARTS[each.part]}</td>
                <td>{each.kind}</td>
                <td>{valuesOf(each)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function valuesOf(each: (typeof report.variables)[number]): string {
  if (each.values) {
    const first = each.values.slice(0, 12).map(shown).join(", ");
    return each.values.length > 12 ? `${first}, … (${number(each.values.length)})` : first;
  }
  return each.low === undefined ? "" : `${number(each.low)} to ${number(each.high)}`;
}
