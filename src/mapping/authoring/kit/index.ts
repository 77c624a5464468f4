/**
 * The test kit of mappers: `import { mapText, mapperContract } from "headgate/mapper/testing"`. Works with any test
 * runner; `docs/mapper-tutorial.md` shows it with Vitest.
 */

export { loadMapper } from "../../load-mapper.ts";
export { digestMapper } from "../../mapper-files.ts";
export { listCases } from "../case-files.ts";
export { type CaseOutcome, runCase, updateCase } from "../cases.ts";
export { type ContractCheck, type ContractSample, mapperContract } from "./contract.ts";
export { FIXED_MS, type MapTestOptions, type MapTestResult, mapPath, mapText, withFixedClock } from "./map-text.ts";
