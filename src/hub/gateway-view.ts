/** A reading of a file, where the file has it. */
export interface PlacedReading {
  /** The fields by which the push named its target, among others. */
  readonly element: Readonly<Record<string, unknown>>;
  readonly value: number;
  readonly version: string | null;
  /** Line or row; null when it is not known. */
  readonly row: number | null;
  readonly sheet: string | null;
}

/** The facts of the gateway beside a hub (`platform.ts`) that the hub shows. */
export interface GatewayView {
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  health(): Promise<readonly { readonly part: string; readonly ready: boolean; readonly reason: string }[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
  /** The readings of an operation at a date; none where the gateway no longer has the file. */
  placedAt(operationId: string, atMs: number): Promise<readonly PlacedReading[]>;
}

/** Null for a hub without such a gateway, and while that is stopping. */
export type GatewayViewOf = () => GatewayView | null;

export const NO_GATEWAY: GatewayViewOf = () => null;
