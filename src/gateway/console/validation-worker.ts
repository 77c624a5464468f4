/** A thread that parses and checks the text of a configuration, which takes seconds of a processor for a large one. */
import { faultsIn } from "#core/config/document.ts";
import { gatewayConfig } from "../config.ts";
import type { Validation } from "../operations/api/configuration.ts";
import { lintTriggers } from "../triggers/lint.ts";

type Finding = Validation["findings"][number];

/** Findings of an answer. */
const FINDINGS_MAX = 200;

/** Nothing that the text names is read, and none of its secrets is remembered. */
export function perform(text: string): Validation {
  const { faults, count, value } = faultsIn(text, gatewayConfig, FINDINGS_MAX);
  const warnings = value === null ? [] : lintTriggers(value.triggers, value.drops);
  const findings = [
    ...faults.map((words): Finding => ({ level: "failed", ...placed(words), hint: null })),
    ...warnings.slice(0, FINDINGS_MAX).map(
      ({ trigger, what, hint = null }): Finding => ({
        level: "warning",
        line: null,
        what: `trigger ${trigger}: ${what}`,
        hint,
      }),
    ),
  ];
  const left = count + warnings.length - findings.length;
  if (left > 0) findings.push(moreFindings(left, count > 0 ? "failed" : "warning"));
  return { isValid: count === 0, findings };
}

function moreFindings(left: number, level: Finding["level"]): Finding {
  return { level, line: null, what: `${left} more are not shown`, hint: "Correct these first, and check again." };
}

/** `line 12: drops[0].kind: …`, or the parser's `… at line 12, column 3: …`. */
function placed(words: string): Pick<Finding, "line" | "what"> {
  const [, ahead, rest] = /^line (\d+): (.*)$/s.exec(words) ?? [];
  if (ahead !== undefined && rest !== undefined) return { line: Number(ahead), what: rest };
  const inside = /\bat line (\d+)\b/.exec(words)?.[1];
  return { line: inside === undefined ? null : Number(inside), what: words };
}
