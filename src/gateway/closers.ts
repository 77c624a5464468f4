/** Close functions in the order of opening, so that they run in reverse. */
export type Closer = () => Promise<unknown>;

export async function closeAll(closers: readonly Closer[]): Promise<void> {
  const faults: unknown[] = [];
  for (const close of closers.toReversed()) await close().catch((thrown) => faults.push(thrown));
  // Everything is closed, the ledger's lock included, before the first fault is thrown.
  if (faults.length > 0) throw faults[0];
}
