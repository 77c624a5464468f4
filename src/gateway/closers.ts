/** What was opened, in order, so that it can be closed in reverse. */
export type Closer = () => Promise<unknown>;

export async function closeAll(closers: readonly Closer[]): Promise<void> {
  const faults: unknown[] = [];
  for (const close of closers.toReversed()) await close().catch((thrown) => faults.push(thrown));
  // Everything is closed, the ledger's lock among it, before the first fault is told.
  if (faults.length > 0) throw faults[0];
}
