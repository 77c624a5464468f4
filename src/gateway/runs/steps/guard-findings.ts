/** Findings of the guard in the parts of one run, counted; the first of each kind is named. */

import type { ErrorCode } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import type { GuardAct, GuardPolicy } from "../../delivery/delivery.ts";
import type { Reason, TargetFacts, TargetFinding } from "../../model.ts";

type What = TargetFinding["what"];

/** In the order in which they are reported. */
const KINDS: Readonly<
  Record<
    What,
    {
      readonly policy: keyof GuardPolicy;
      readonly code: ErrorCode;
      /** Of one target, and of several. */
      readonly words: readonly [string, string];
    }
  >
> = {
  missing: { policy: "targets", code: "HG-GUARD-001", words: ["target is missing", "targets are missing"] },
  ambiguous: {
    policy: "targets",
    code: "HG-GUARD-001",
    words: ["target means several variables", "targets mean several variables"],
  },
  unit: {
    policy: "units",
    code: "HG-GUARD-002",
    words: ["target is of another unit", "targets are of another unit"],
  },
  date: {
    policy: "dates",
    code: "HG-GUARD-003",
    words: ["target has dates beyond the limits", "targets have dates beyond the limits"],
  },
  version: {
    policy: "versions",
    code: "HG-GUARD-004",
    words: ["target would get a second version", "targets would get a second version"],
  },
};
const WHATS = Object.keys(KINDS) as What[];

/** Findings that a reason names. */
const NAMED_MAX = 100;

export class GuardFindings {
  readonly #policy: GuardPolicy;
  readonly #counts = new Map<What, number>();
  readonly #first = new Map<What, TargetFinding>();
  /** Of those that hold the run. */
  readonly #named: TargetFinding[] = [];
  /** Targets that are missing, so that they can be created; undefined when there are more than are asked for. */
  missing: TargetFacts[] | undefined = [];
  readonly #missingMax: number;
  /** Readings of missing targets, whatever the policy says of these. */
  #discards = 0;

  constructor(policy: GuardPolicy, missingMax: number) {
    this.#policy = policy;
    this.#missingMax = missingMax;
  }

  add(findings: readonly TargetFinding[], missing: readonly TargetFacts[]): void {
    for (const finding of findings) {
      const { what } = finding;
      if (what === "missing") this.#discards += finding.points;
      this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
      if (!this.#first.has(what)) this.#first.set(what, finding);
      if (this.#act(what) === "hold" && this.#named.length < NAMED_MAX) this.#named.push(finding);
    }
    this.missing?.push(...missing.slice(0, this.#missingMax + 1));
    if ((this.missing?.length ?? 0) > this.#missingMax) this.missing = undefined;
  }

  count(what: What): number {
    return this.#counts.get(what) ?? 0;
  }

  /** Why the run is held, or null. */
  holding(): Reason | null {
    const [first, ...others] = this.#kinds("hold");
    if (first === undefined) return null;
    const { code } = KINDS[first];
    const message = [first, ...others].map((what) => this.#words(what)).join("; ");
    const discards = this.#discards === 0 ? {} : { discards: this.#discards };
    return { code, message, hint: REGISTER[code].hint, targets: this.#named, ...discards };
  }

  /** Findings that are only reported, or null. */
  warning(): string | null {
    const kinds = this.#kinds("warn");
    return kinds.length === 0 ? null : kinds.map((what) => `${this.#words(what)} [${KINDS[what].code}]`).join("; ");
  }

  #kinds(act: GuardAct): readonly What[] {
    return WHATS.filter((what) => this.#counts.has(what) && this.#act(what) === act);
  }

  #act(what: What): GuardAct {
    return this.#policy[KINDS[what].policy];
  }

  /** `2 targets are missing: sourceEan=1 mappingConfig=a (there is no source …) and 1 more` */
  #words(what: What): string {
    const count = this.#counts.get(what) ?? 0;
    const first = this.#first.get(what);
    const more = count > 1 ? ` and ${count - 1} more` : "";
    return `${count} ${KINDS[what].words[count === 1 ? 0 : 1]}: ${first?.target} (${first?.words})${more}`;
  }
}
