/** The entry of one code in the register. */
export interface RegisterEntry {
  readonly title: string;
  readonly hint: string;
  /** The next step of a running gateway. A command retries nothing, and leaves it out. */
  readonly again?: string;
  /** Another process owns the state and may still be ending: a daemon that could not start for it is started again. */
  readonly isWorthARestart?: true;
}
