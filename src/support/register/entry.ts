/** What the register says of one code. */
export interface RegisterEntry {
  readonly title: string;
  readonly hint: string;
}
