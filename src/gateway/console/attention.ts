/** The inbox of the console: what needs attention, grouped by its cause. */

import { isoInstant } from "#core/clock.ts";
import type { GatewayConfig } from "../config.ts";
import type { ListedFile } from "../ledger/ledger.ts";
import type { LedgerEvent } from "../model.ts";
import type { AttentionItem, attentionEndpoints } from "../operations/api/attention.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import type { AttentionKind } from "../operations/attention-kinds.ts";
import { unknownSubject } from "../operations/problems.ts";
import { allActionsOf, currentPlace } from "../operations/run-actions.ts";
import { type InboxParts, keyOf, type Member, shareInbox } from "./inbox.ts";

const EXAMPLES = 3;

export function attentionHandlers(
  config: GatewayConfig,
  parts: InboxParts,
  inbox = shareInbox(config, parts),
): HandlersOf<typeof attentionEndpoints> {
  const details = (members: readonly Member[]) => itemsOf(members, config, parts);
  return {
    async attention() {
      const { groups, total, isCut } = await inbox.recent();
      const firsts = await Promise.all(groups.map((group) => group.part(undefined, EXAMPLES)));
      const examples = await details(firsts.flatMap(({ members }) => members));
      return {
        ...{ total, isCut, at: isoInstant(parts.clock.now()) },
        groups: groups.map(({ part: _part, ...facts }, at) => ({
          ...facts,
          examples: (firsts[at]?.members ?? []).flatMap(({ key }) => examples.get(key) ?? []),
        })),
      };
    },
    async attentionItems({ query: { group: key, after, limit } }) {
      const group = (await inbox.recent()).groups.find((one) => one.key === key);
      if (group === undefined)
        throw unknownSubject({
          operation: "list attention",
          subject: key,
          message: "nothing of this group needs attention now",
        });
      const { members, next } = await group.part(after, limit);
      const items = await details(members);
      return { items: members.flatMap((member) => items.get(member.key) ?? []), next };
    },
  };
}

/** Without those whose file was forgotten meanwhile. */
async function itemsOf(
  members: readonly Member[],
  { triggers }: GatewayConfig,
  { ledger }: Pick<InboxParts, "ledger">,
): Promise<ReadonlyMap<string, AttentionItem>> {
  const files = members.flatMap(({ of }) => ("file" in of ? [of.file] : []));
  const listed = new Map((await ledger.files.byId(files)).map((one) => [one.arrival.id, one]));
  const hasTemplate = new Set(triggers.flatMap(({ name, provision }) => (provision === undefined ? [] : [name])));
  const items = new Map<string, AttentionItem>();
  for (const { key, kind, of } of members) {
    if ("item" in of) items.set(key, of.item);
    else {
      const found = listed.get(of.file);
      const events = found === undefined ? [] : await ledger.events(of.file);
      const item = found === undefined ? null : itemOfRun(key, kind, { ...found, events }, hasTemplate);
      if (item !== null) items.set(key, item);
    }
  }
  return items;
}

function itemOfRun(
  key: string,
  kind: AttentionKind,
  { arrival, run, events }: ListedFile & { readonly events: readonly LedgerEvent[] },
  hasTemplate: ReadonlySet<string>,
): AttentionItem | null {
  // It was replayed, or its state has changed, since the inbox was read.
  if (run === null || keyOf(run.id, run.state) !== key) return null;
  const { id, drop, path, state, reason, points, binding, changedAt } = run;
  return {
    ...{ key, kind, state, run: id, file: arrival.id, drop, path, points, since: changedAt },
    trigger: binding.trigger,
    mapper: `${binding.mapper.name} ${binding.mapper.version}`,
    code: reason?.code ?? null,
    reason: reason?.message ?? "",
    hint: reason?.hint ?? null,
    place: reason?.place ?? null,
    rejectedByReason: [...(reason?.rejectedByReason ?? [])],
    targets: [...(reason?.targets ?? [])],
    discards: reason?.discards ?? 0,
    currentPlace: currentPlace(arrival, events),
    actions: [...allActionsOf(run, hasTemplate.has(binding.trigger))],
  };
}
