/** What the register says of one code. */
export interface RegisterEntry {
  readonly title: string;
  readonly hint: string;
  /** What a gateway that runs does about it by itself. A command does not, and leaves it out. */
  readonly again?: string;
}
