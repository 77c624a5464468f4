/** An input variable of a calculation. All its columns have one length: that of `atMs`. */
export interface InputVariable {
  /** The name by which the formula knows the variable. */
  readonly alias: string;
  /** Facts about the variable (id, name, unit, site and the like); an R script reads them as `$Variable`. */
  readonly metadata: Readonly<Record<string, string | number | boolean | null>>;
  /** Unit of `values` as given here, after any conversion that the formula asks for. */
  readonly unitId: number;
  /** Instants in milliseconds UTC, ascending. */
  readonly atMs: Float64Array;
  readonly values: Float64Array;
  /** Version of each row; null where a row has none. The whole is null when no row has one. */
  readonly versions: readonly (string | null)[] | null;
  /** Tags of each row, with the reserved key `version` where the row has a version. Null as with `versions`. */
  readonly tags: readonly (Readonly<Record<string, string>> | null)[] | null;
}

/** Values of a field of a form. All its columns have one length; a field without time slices has one value at most. */
export interface InputForm {
  readonly alias: string;
  readonly timeSliced: boolean;
  /** Start of each slice, in milliseconds UTC, ascending; a field without time slices leaves it empty. */
  readonly fromMs: readonly number[];
  /** End of each slice, excluded; null while it has none. */
  readonly untilMs: readonly (number | null)[];
  readonly values: readonly (string | number | boolean | null)[];
}

export interface InputConstant {
  readonly alias: string;
  readonly value: string | number;
}

/** All that one run of a formula reads. */
export interface CalculationInput {
  /** No process of an engine ever serves two accounts. */
  readonly accountId: number;
  /** An R script, or an expression without its leading "=". */
  readonly formula: string;
  /** Version of the rows for which the formula gives none; one for the whole run. */
  readonly defaultVersion: string;
  /** IANA zone of the calculated variable's source. */
  readonly zone: string;
  /** The outputs that are wanted, both ends included. The caller drops rows outside of it. */
  readonly window: { readonly fromMs: number; readonly toMs: number };
  readonly variables: readonly InputVariable[];
  readonly forms: readonly InputForm[];
  readonly constants: readonly InputConstant[];
}

/** The rows that a formula gave, in its order. All columns have one length. */
export interface ComputedRows {
  readonly kind: "computed";
  /** Whole milliseconds UTC. */
  readonly atMs: Float64Array;
  /** Finite numbers: rows without a value are left out, and `warnings` say how many. */
  readonly values: Float64Array;
  /** Version that the formula gives a row, verbatim; null takes the default version. */
  readonly versions: readonly (string | null)[] | null;
  readonly tags: readonly (Readonly<Record<string, string>> | null)[] | null;
  /** Reports of the formula itself; its rows are stored all the same. */
  readonly errors: readonly string[];
  /** Facts for the author of the formula: rows and tags that the engine left out, and why. */
  readonly warnings: readonly string[];
}

/** The formula is at fault: an error in it, a wrong shape, a limit. It fails again until a person changes something. */
export interface FailedCalculation {
  readonly kind: "failed";
  readonly message: string;
}

export type CalculationResult = ComputedRows | FailedCalculation;

/** Computes formulas. Runs may be asked for side by side; the engine bounds how many it works on. */
export interface CalculationEngine {
  /**
   * Runs one formula. An abort of `signal` ends the run and throws its reason. Throws a `TransientError` while the
   * engine itself is away (it cannot start, or the machine ended it), a `ConfigError` when a person must set it up.
   */
  run(input: CalculationInput, signal: AbortSignal): Promise<CalculationResult>;
  /** Ends what runs, and every process and thread of the engine. */
  close(): Promise<void>;
}
