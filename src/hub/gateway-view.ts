/** The facts of the gateway beside a hub (`platform.ts`) that the hub shows. */
export interface GatewayView {
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  health(): Promise<readonly { readonly part: string; readonly ready: boolean; readonly reason: string }[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
}

/** Null for a hub without such a gateway, and while that is stopping. */
export type GatewayViewOf = () => GatewayView | null;

export const NO_GATEWAY: GatewayViewOf = () => null;
