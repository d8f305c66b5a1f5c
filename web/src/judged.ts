// Which actions are best: the rule is that of `rspmn.infer.actions`.
import { report } from "./data";

const TIE = 1e-9;
const LEAST_KNOWN = 0.95;

interface Judged {
  utility: number | null;
  known: number;
  delay: number;
  steps: number;
  available?: number;
  best: boolean;
  taken: boolean;
}

/** Return the actions of enough logged steps, if the policy needs any. */
function supported<A extends Judged>(offered: A[]): A[] {
  if (report.support === null) return offered;
  const [least, share] = report.support;
  const usual = share * Math.max(0, ...offered.map((action) => action.steps));
  const enough = least === null ? usual : Math.min(least, usual);
  return offered.filter((action) => action.steps >= enough);
}

/** Mark the best actions and the one to take: ties go to the one that earns soonest. */
export function judged<A extends Judged>(actions: A[]): A[] {
  const offered = supported(actions.filter((action) => (action.available ?? 1) > 0));
  const most = Math.max(0, ...offered.map((action) => action.known));
  const running = offered.filter((action) => action.known >= LEAST_KNOWN * most);
  const valued = running.filter((action) => action.utility !== null);
  if (running.length) {
    const worths = valued.map((action) => action.utility!);
    const size = Math.max(0, ...worths.map(Math.abs));
    const least = Math.max(...worths) - Math.max(TIE * size, 2 * report.bound);
    // Where nothing is known of any action, all are as good.
    const best = valued.length ? valued.filter((action) => action.utility! >= least) : running;
    const soonest = Math.min(...best.map((action) => action.delay));
    const late = Math.max(...best.map((action) => Math.abs(action.delay)));
    best.forEach((action) => (action.best = true));
    best.find((action) => action.delay <= soonest + TIE * late)!.taken = true;
  }
  const rank = (action: A) => (action.taken ? 0 : action.utility === null ? 2 : 1);
  return actions.sort((a, b) => rank(a) - rank(b) || (b.utility ?? 0) - (a.utility ?? 0));
}
