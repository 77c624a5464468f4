/** Whether a settled file goes now, or waits for the order of its lane. */
export type OrderVerdict =
  | { readonly status: "goes"; readonly warning: string | null }
  | { readonly status: "waits"; readonly reason: string; readonly leftMs: number };

/** The verdict on nearly every file. */
export const GOES: OrderVerdict = { status: "goes", warning: null };
