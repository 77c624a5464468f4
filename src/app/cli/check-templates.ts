/**
 * Checks the `provision` templates of triggers for `headgate check`: whether their service knows the zones, units and
 * types.
 */

import { systemClock } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { checkTemplate } from "#gateway/provisioning/template-check.ts";
import type { Finding } from "./findings.ts";

export async function checkTemplates(
  { triggers, services, push }: GatewayConfig,
  say: (finding: Finding) => void,
  stop: AbortSignal,
): Promise<void> {
  for (const { name, provision, service } of triggers) {
    const access = services.find((one) => one.name === (service ?? services[0]?.name));
    if (provision === undefined || access === undefined) continue;
    const part = `trigger ${name}`;
    try {
      const faults = await checkTemplate(provision, access, { timeouts: push.timeouts, clock: systemClock }, stop);
      for (const { field, what } of faults)
        say({
          part,
          level: "failed",
          what: `provision.${field}: ${what}`,
          hint: "Missing variables of this trigger cannot be created until it is corrected.",
        });
      if (faults.length === 0)
        say({ part, level: "ok", what: `the service ${access.name} knows its provision template` });
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      const what = `the provision template cannot be compared with the service ${access.name}: ${wordsOf(thrown)}`;
      say({ part, level: "warning", what });
    }
  }
}
