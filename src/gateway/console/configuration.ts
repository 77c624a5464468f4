/** Handlers of the endpoints about the configuration. */
import { faultsIn } from "../../config/document.ts";
import { settingsOf } from "../../config/effective.ts";
import { gatewayConfig } from "../../config/gateway-config.ts";
import type { configurationEndpoints, Validation } from "../../operations/api/configuration.ts";
import type { HandlersOf } from "../../operations/api/endpoint.ts";
import { lintTriggers } from "../../triggers/lint.ts";
import type { QueryParts } from "../operator-queries.ts";

type Finding = Validation["findings"][number];

export function configurationHandlers({
  live,
  configFile,
  configuration,
}: Pick<QueryParts, "live" | "configFile" | "configuration">): HandlersOf<typeof configurationEndpoints> {
  return {
    configuration: () => ({
      file: configFile ?? null,
      settings: settingsOf(live.file()),
      reloads: configuration?.reloads() ?? [],
    }),
    validate: ({ body }) => validationOf(body.text),
  };
}

/** Nothing that the text names is read, and none of its secrets is remembered. */
function validationOf(text: string): Validation {
  const { faults, value } = faultsIn(text, gatewayConfig);
  const warnings = value === null ? [] : lintTriggers(value.triggers, value.drops);
  return {
    isValid: faults.length === 0,
    findings: [
      ...faults.map((words): Finding => ({ level: "failed", ...placed(words), hint: null })),
      ...warnings.map(
        ({ trigger, what, hint = null }): Finding => ({
          level: "warning",
          line: null,
          what: `trigger ${trigger}: ${what}`,
          hint,
        }),
      ),
    ],
  };
}

/** `line 12: drops[0].kind: …`, or the parser's `… at line 12, column 3: …`. */
function placed(words: string): Pick<Finding, "line" | "what"> {
  const [, ahead, rest] = /^line (\d+): (.*)$/s.exec(words) ?? [];
  if (ahead !== undefined && rest !== undefined) return { line: Number(ahead), what: rest };
  const inside = /\bat line (\d+)\b/.exec(words)?.[1];
  return { line: inside === undefined ? null : Number(inside), what: words };
}
