/** The service's contract, as clients and the hub share it: `headgate/wire`. */
export * from "./alarms.ts";
export * from "./audit.ts";
export * from "./calculated.ts";
export * from "./calculation.ts";
export * from "./data.ts";
export * from "./event-kinds.ts";
export * from "./events.ts";
export * from "./file-trigger.ts";
export * from "./form.ts";
export * from "./group.ts";
export * from "./invitation.ts";
export * from "./listed-trigger.ts";
export * from "./master-data.ts";
export * from "./origin.ts";
export * from "./problem.ts";
export * from "./push.ts";
export * from "./push-body.ts";
export * from "./push-parts.ts";
export * from "./push-scan.ts";
export * from "./quality.ts";
export * from "./referentials.ts";
export * from "./storage.ts";
export * from "./structure.ts";
export * from "./target.ts";
export * from "./token.ts";
export * from "./trigger.ts";
export * from "./units.ts";
export * from "./user.ts";
export * from "./view.ts";
export * from "./webhook.ts";
export * from "./zones.ts";

/** Carried by every call in the header `Api-Version`; without it the service follows its newest version. */
export const API_VERSION = "1.7";
