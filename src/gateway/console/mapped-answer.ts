/** The answer of the playground, from the result of a dry run and its segment. */
import { byAttention, conflictWords, findingWords, type MapResult } from "#mapping/contract.ts";
import type { DryRunFiles } from "#mapping/workers/dry-run.ts";
import { targetWords } from "#wire/target.ts";
import type { MapperIdentity, Place, Reason } from "../model.ts";
import { type Mapped, PAYLOAD_MAX, READINGS_MAX, REFUSED_MAX, TARGETS_MAX } from "../operations/api/playground.ts";
import { placedReadings } from "../spool/placed-readings.ts";
import { segmentFiles } from "../spool/segment-files.ts";

type Problem = Mapped["problems"][number];

export interface DryRunFacts {
  readonly mapper: MapperIdentity;
  readonly durationMs: number;
  readonly log: readonly string[];
  /** YAML. */
  readonly trigger: string;
}

const NOTHING = {
  points: 0,
  superseded: 0,
  period: null,
  targetCount: 0,
  targets: [],
  readings: [],
  isCut: false,
  payload: null,
  isPayloadCut: false,
} as const;

/** For settings that the mapper refuses: the file was not read. */
export function unmappedAnswer(problem: Problem, facts: DryRunFacts): Mapped {
  return {
    status: "failed",
    ...shownFacts(facts),
    ...NOTHING,
    targets: [],
    readings: [],
    refused: [],
    refusedCount: 0,
    refusedByReason: [],
    problems: [problem],
  };
}

export async function mappedAnswer(result: MapResult, files: DryRunFiles, facts: DryRunFacts): Promise<Mapped> {
  const refused = {
    refused: result.rejected.slice(0, REFUSED_MAX).map(({ message, place }) => ({ message, place: shownPlace(place) })),
    refusedCount: result.rejectedCount,
    refusedByReason: (result.rejectedByReason ?? []).map(({ message, column, count }) => ({
      message,
      count,
      ...(column === undefined ? {} : { column }),
    })),
  };
  if (result.status === "failed")
    return {
      ...unmappedAnswer(problemOf(result.reason), facts),
      ...refused,
      problems: [problemOf(result.reason), ...findingsOf(result)],
    };
  const { points, superseded, period, targets } = result;
  return {
    status: "mapped",
    ...shownFacts(facts),
    ...{ points, superseded, period },
    targetCount: targets.length,
    targets: targets.slice(0, TARGETS_MAX).map((one) => ({
      target: one.target,
      points: one.points,
      unit: one.unit ?? null,
      from: one.points === 0 ? null : instant(one.facts.fromMs),
      to: one.points === 0 ? null : instant(one.facts.toMs),
    })),
    ...(await readingsIn(files)),
    ...(await payloadIn(files)),
    ...refused,
    problems: [
      ...findingsOf(result),
      ...(result.conflicts?.shown.map((one) => remark(conflictWords(one))) ?? []),
      ...(points === 0 ? [remark("the file holds no readings: its run would be empty")] : []),
    ],
  };
}

function shownFacts({ mapper: { name, version, digest }, durationMs, log, trigger }: DryRunFacts) {
  return { mapper: { name, version, digest }, durationMs, log: [...log], trigger };
}

async function readingsIn({ segmentPath }: DryRunFiles): Promise<Pick<Mapped, "readings" | "isCut">> {
  const readings: Mapped["readings"] = [];
  for await (const { element, reading, row, sheet } of placedReadings(segmentFiles(segmentPath))) {
    if (readings.length === READINGS_MAX) return { readings, isCut: true };
    const version = reading.version ?? element.version ?? null;
    readings.push({ target: targetWords(element), date: reading.date, value: reading.value, version, row, sheet });
  }
  return { readings, isCut: false };
}

async function payloadIn({ bodies }: DryRunFiles): Promise<Pick<Mapped, "payload" | "isPayloadCut">> {
  for await (const body of bodies()) {
    const text = body.toString("utf8");
    return { payload: text.slice(0, PAYLOAD_MAX), isPayloadCut: text.length > PAYLOAD_MAX };
  }
  return { payload: null, isPayloadCut: false };
}

function problemOf({ code, message, hint, place }: Reason): Problem {
  return { code, message, hint: hint ?? null, place: place === undefined ? null : shownPlace(place) };
}

function findingsOf({ findings }: MapResult): Problem[] {
  return byAttention(findings).map((one) => remark(findingWords(one)));
}

function remark(message: string): Problem {
  return { code: null, message, hint: null, place: null };
}

function shownPlace({ sheet, row, column, text }: Place): Mapped["refused"][number]["place"] {
  return {
    ...(sheet === undefined ? {} : { sheet }),
    ...(row === undefined ? {} : { row }),
    ...(column === undefined ? {} : { column }),
    ...(text === undefined ? {} : { text }),
  };
}

function instant(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toString();
}
