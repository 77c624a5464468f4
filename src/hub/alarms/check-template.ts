/** Whether a template can work in its account: what it names is there, and its receivers may be reached. */
import { type AlarmTemplateBody, ianaZone } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { reachOf } from "../deliveries/receivers.ts";
import { invalidField } from "../http/problems.ts";
import { AccountFull } from "../store/owned.ts";
import type { VariableFacts } from "../store/store.ts";
import { ONE } from "../structure/pages.ts";
import { requireExpression } from "./expression.ts";
import { selectedVariables } from "./selection.ts";

const ALL = { offset: 0, limit: null };

/** Returns the variables that it selects now. Throws a 400 that names the field. */
export async function requireWorkable(
  context: HubContext,
  accountId: number,
  { selection, condition, notifications = {} }: AlarmTemplateBody,
): Promise<readonly VariableFacts[]> {
  const { store, clock, options } = context;
  let selected: readonly VariableFacts[] = [];
  if (condition.kind === "LateFile") await requireTriggers(context, accountId, selection.triggerIds);
  else {
    const { triggerIds: _, ...fields } = selection;
    if (Object.values(fields).every((field) => field === undefined))
      throw invalidField("selection", "selects nothing: give variableIds, sourceIds, siteIds, tags, customFilter …");
    selected = await selectedVariables(store, accountId, selection, clock.now().epochMilliseconds);
  }
  if (condition.zone !== undefined && ianaZone(condition.zone) === undefined)
    throw invalidField("condition.zone", `${condition.zone} is neither an IANA nor a Windows time zone`);
  if (condition.kind === "Expression") await requireExpression(condition.expression ?? "");
  for (const url of notifications.webhooks ?? [])
    if (reachOf(new URL(url), options.webhook.hosts) === "refused")
      throw invalidField(
        "notifications.webhooks",
        `${url} is not called: this hub calls public addresses at port 443 (https), and those of its webhook.hosts`,
      );
  await requireReceivers(context, accountId, notifications);
  return selected;
}

/** Throws `AccountFull` where a template, of the id or a new one, would have more alarms than the account may have. */
export async function requireRoomForAlarms(
  { store: { alarms }, options }: HubContext,
  accountId: number,
  id: number | null,
  selected: readonly unknown[],
): Promise<void> {
  const most = limitOf(options, accountId, "alarm");
  const { total } = await alarms.alarms.list(accountId, [], ONE);
  const own = id === null ? [] : (await alarms.templates.list(accountId, [{ templateIds: [id] }], ONE)).rows;
  if (total - (own[0]?.alarms ?? 0) + selected.length > most) throw new AccountFull("alarm", most);
}

async function requireTriggers({ store }: HubContext, accountId: number, ids: readonly number[] | undefined) {
  if (ids === undefined || ids.length === 0)
    throw invalidField("selection.triggerIds", "is needed by the kind LateFile: the file triggers to watch");
  const { rows } = await store.fileTriggers.list(accountId, { ids }, ALL);
  const known = new Set(rows.map(({ id }) => id));
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length > 0)
    throw invalidField("selection.triggerIds", `no file trigger ${missing.join(", ")} in this account`);
}

async function requireReceivers(
  { store }: HubContext,
  accountId: number,
  { variableId, userIds = [] }: NonNullable<AlarmTemplateBody["notifications"]>,
): Promise<void> {
  if (variableId !== undefined) {
    const { rows } = await store.structure.variables(accountId, { ids: [variableId] }, { offset: 0, limit: 1 });
    const field = "notifications.variableId";
    if (rows[0] === undefined) throw invalidField(field, `no variable ${variableId} in this account`);
    if (rows[0].calculated !== null)
      throw invalidField(field, `${variableId} is calculated: its points come from its formulas alone`);
  }
  if (userIds.length === 0) return;
  const users = await store.people.members(accountId, { ids: userIds }, ALL);
  const known = new Set(users.rows.filter(({ email }) => email !== null).map(({ id }) => id));
  const missing = userIds.filter((id) => !known.has(id));
  if (missing.length > 0)
    throw invalidField("notifications.userIds", `no user ${missing.join(", ")} with an e-mail in this account`);
}
