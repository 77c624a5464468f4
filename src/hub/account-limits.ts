/** The limits of accounts on what they make, and the refusal beyond them. */
import type { HubOptions } from "./options.ts";

/** Rows of a table that belong to an account. */
export type Limited = keyof typeof SETTINGS;

const SETTINGS = {
  site: { name: "sites", byDefault: 250_000, words: "sites" },
  source: { name: "sources", byDefault: 250_000, words: "sources" },
  variable: { name: "variables", byDefault: 1_000_000, words: "variables" },
  alarm_template: { name: "alarmTemplates", byDefault: 1_000, words: "alarm templates" },
  alarm: { name: "alarms", byDefault: 200_000, words: "alarms" },
  membership: { name: "users", byDefault: 50_000, words: "users" },
  file_trigger: { name: "triggers", byDefault: 1_000, words: "file triggers" },
  form: { name: "forms", byDefault: 500, words: "forms" },
  site_group: { name: "groups", byDefault: 5_000, words: "groups of sites" },
  view: { name: "views", byDefault: 1_000, words: "views" },
  alarm_view: { name: "alarmViews", byDefault: 1_000, words: "views of alarms" },
} as const;

type Configured = Pick<HubOptions, "accounts" | "customerLimits">;

export function limitOf({ accounts, customerLimits }: Configured, accountId: number, table: Limited): number {
  const { name, byDefault } = SETTINGS[table];
  return accounts.find(({ id }) => id === accountId)?.limits?.[name] ?? customerLimits[name] ?? byDefault;
}

/** The refusal, for its sender. */
export function fullWords({ table, most }: Pick<AccountFull, "table" | "most">): string {
  const { name, words } = SETTINGS[table];
  return (
    `an account may have ${most} ${words}, and this one would have more (\`${name}\` of \`customerLimits\`, or of ` +
    "the `limits` of the account, in the settings of the hub): remove some, or ask the operator of the hub for more"
  );
}

/** An account would have more rows than it may have. */
export class AccountFull extends Error {
  readonly table: Limited;
  readonly most: number;

  constructor(table: Limited, most: number) {
    super(`the account has ${most} rows of ${table} at most`);
    this.table = table;
    this.most = most;
  }
}
