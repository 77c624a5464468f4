/** How full the spool is, for health and metrics. */
export interface SpoolState {
  /** Bytes of the inputs, segments and bodies of runs in progress, and of files that are being fetched. */
  readonly usedBytes: number;
  /** The part of bodies that wait in the ledger's database, where all nodes have them. */
  readonly sharedBytes: number;
  /** The part of held runs, which only a person or the structure can release; counted when much is in use. */
  readonly held: { readonly runs: number; readonly bytes: number };
  readonly budgetBytes: number;
  /** Free bytes of the disk, for this user. */
  readonly freeBytes: number;
  /** Why no more files are taken, in words; null while they are. */
  readonly full: string | null;
}
