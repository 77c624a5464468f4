/** What tests of alarms do at a hub. */
import type { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import type { AlarmChange } from "#wire/index.ts";
import { createChain, type TestHub, until } from "../fixture.ts";

export const DAY = "2026-03-01";

export function alarmsOf(hubOf: () => TestHub) {
  const points = (values: readonly number[], date = DAY) =>
    values.map((value, hour) => ({ date: `${date}T${String(hour).padStart(2, "0")}:00:00Z`, value }));
  const pushed = (variableId: number, values: readonly number[], date?: string) =>
    hubOf().push([{ variableId, data: points(values, date) }]);

  async function variable(more: object = {}): Promise<number> {
    const { variableIds } = await createChain(hubOf(), { variables: [more] });
    return variableIds[0] ?? 0;
  }

  async function templateOf(variableId: number, more: object = {}): Promise<number> {
    return hubOf().post("/alarms/template", {
      name: "Too high",
      selection: { variableIds: [variableId] },
      condition: { kind: "Above", set: 10, reset: 8 },
      ...more,
    });
  }

  const alarmOf = (templateId: number) =>
    until(async () => (await hubOf().get("/alarms", { templateIds: templateId }))[0]);
  /** State and date of each change, oldest first. */
  const changes = async (templateId: number) => {
    const found: AlarmChange[] = await hubOf().get("/alarms/history", { templateIds: templateId });
    return found.map(({ state, date, value }) => [state, date.slice(0, 16), value]).toReversed();
  };
  const changesOf = (templateId: number, count: number) =>
    until(async () => {
      const found = await changes(templateId);
      return found.length >= count ? found : undefined;
    });
  return { variable, pushed, templateOf, alarmOf, changes, changesOf };
}

/** Nothing is due any more. */
export async function settled(evaluation: AlarmEvaluation): Promise<void> {
  while (evaluation.isBehind) await evaluation.round();
}
