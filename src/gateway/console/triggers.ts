/** Handlers of the endpoints about triggers. */

import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { type GatewayConfig, isInsideHub } from "../config.ts";
import { testName } from "../name-test.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import type { TriggerFacts, triggerEndpoints } from "../operations/api/triggers.ts";
import { unknownSubject } from "../operations/problems.ts";
import { triggerFault } from "../trigger-report.ts";
import type { RegistryEntry } from "../triggers/registry.ts";
import type { QueryParts } from "./parts.ts";

type TriggerParts = Pick<QueryParts, "ledger" | "triggers" | "pauses" | "closers">;

export function triggerHandlers(config: GatewayConfig, parts: TriggerParts): HandlersOf<typeof triggerEndpoints> {
  const { registry } = parts.triggers;
  const catalogue = createCatalogue(config.mappers.folders);
  parts.closers.push(() => catalogue.close());
  const problemOf = (entry: Extract<RegistryEntry, { mapper: string }>) =>
    triggerFault({ trigger: entry, fault: null }, { catalogue, isInsideHub: isInsideHub(config) });
  return {
    async triggers() {
      const all: TriggerFacts[] = [];
      for (const entry of registry.list()) {
        const last = await parts.ledger.latestRunOf(entry.name);
        const common = { paused: parts.pauses.reason("trigger", entry.name), lastFileAt: last?.createdAt ?? null };
        if ("unknown" in entry) all.push({ ...UNKNOWN, ...common, name: entry.name, problem: entry.unknown });
        else all.push({ ...factsOf(entry), ...common, problem: await problemOf(entry) });
      }
      return all;
    },
    test({ query: { name, drop, ingestion } }) {
      if (drop !== undefined && !config.drops.some((one) => one.name === drop))
        throw unknownSubject({ operation: "test name", subject: drop, message: `there is no drop ${drop}` });
      const { others, verdicts, ...test } = testName(name, { drop, ingestion }, { registry, drops: config.drops });
      const shown = verdicts.map(({ trigger, matches, words }) => ({ trigger, matches, words }));
      return { ...test, others: [...others], verdicts: shown };
    },
  };
}

const UNKNOWN: Omit<TriggerFacts, "name" | "paused" | "problem" | "lastFileAt"> = {
  state: null,
  ingestionType: null,
  mapper: null,
  service: null,
  title: null,
  drops: null,
  patterns: [],
  combination: null,
  expect: null,
};

function factsOf(
  trigger: Extract<RegistryEntry, { mapper: string }>,
): Omit<TriggerFacts, "paused" | "problem" | "lastFileAt"> {
  const { name, state, ingestionType, mapper, service, origin, drops, expect } = trigger;
  return {
    ...{ name, state, ingestionType, mapper },
    service: service ?? null,
    title: origin?.title ?? null,
    drops: drops === undefined ? null : [...drops],
    patterns: trigger.fileNamePatternMatches.map(({ filterType, value }) => ({ filterType, value })),
    combination: trigger.fileTriggerCombination,
    expect: expect === undefined ? null : expect,
  };
}
