/** How outcomes are learned, by the configuration. */
import type { FinishRule, Run } from "../../model.ts";
import type { FinishAfter } from "../../states.ts";
import type { ConfirmRule } from "./steps.ts";

/** Port 0 in `webhook.publicUrl` stands for the port that the listener of webhooks took. */
export function webhookAddress(publicUrl: string | undefined, listenerUrl: string): string | null {
  if (publicUrl === undefined) return null;
  const url = new URL(publicUrl);
  if (url.port === "0") url.port = new URL(listenerUrl).port;
  return new URL("webhooks/outcome", `${url.href.replace(/\/$/, "")}/`).href;
}

export function confirmRule(
  {
    by,
    within,
    pollEvery,
    webhookWait,
  }: {
    readonly by: "auto" | ConfirmRule["by"];
    readonly within: number;
    readonly pollEvery: number;
    readonly webhookWait: number;
  },
  hasWebhook: boolean,
): ConfirmRule {
  return {
    by: by === "auto" ? (hasWebhook ? "webhook" : "read-back") : by,
    withinMs: within,
    hangMs: Math.min(webhookWait, within / 2),
    everyMs: pollEvery,
  };
}

/** Archiving waits for acceptance, deleting for the confirmation, unless the trigger says otherwise (invariant 1). */
export function finishAfter(
  by: "auto" | ConfirmRule["by"],
  triggers: readonly {
    readonly name: string;
    readonly finishAfter?: FinishAfter | undefined;
  }[],
  run: Run,
  rule: FinishRule,
): FinishAfter {
  if (by === "none") return "accepted";
  const trigger = triggers.find((one) => one.name === run.binding.trigger);
  return trigger?.finishAfter ?? (rule.action === "delete" ? "confirmed" : "accepted");
}
