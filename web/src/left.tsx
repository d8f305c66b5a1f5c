// How many steps are left: what is recommended depends on it.
import { report } from "./data";
import { LEFTS } from "./later";
import { left } from "./store";
import { plural } from "./words";

export function StepsLeft() {
  if (LEFTS.length < 2) return null;
  const horizon = report.model.horizon!;
  return (
    <label>
      <span>Steps to go</span>{" "}
      <select
        id="left" value={left.value ?? horizon}
        onChange={(event) => {
          const chosen = Number(event.currentTarget.value);
          left.value = chosen === horizon ? null : chosen;
        }}
      >
        {LEFTS.map((each) => (
          <option value={each}>{each === horizon ? `${each}, at the start` : each}</option>
        ))}
      </select>
    </label>
  );
}

/** What to say of numbers that are not those of the start. */
export function LaterNote() {
  if (left.value === null) return null;
  return (
    <p class="aside">
      {plural(left.value, "step")} to go: step{" "}
      {report.model.horizon! - left.value + 1} of {report.model.horizon}. Intervals are available
      at the start only.
    </p>
  );
}
