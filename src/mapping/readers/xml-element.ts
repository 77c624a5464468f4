import type { XmlElement } from "./contract.ts";
import { stampPlace } from "./row-place.ts";

const NO_CHILDREN: readonly XmlElement[] = Object.freeze([]);
const NO_ATTRIBUTES: Readonly<Record<string, string>> = Object.freeze(Object.create(null) as Record<string, string>);

/** An element that is returned, or a part of one. */
export class ReadElement implements XmlElement {
  readonly name: string;
  readonly namespace: string;
  readonly row: number;
  attributes: Readonly<Record<string, string>> = NO_ATTRIBUTES;
  text = "";
  ancestors: readonly string[] | undefined;
  #children: ReadElement[] | undefined;

  constructor(name: string, namespace: string, row: number) {
    this.name = name;
    this.namespace = namespace;
    this.row = row;
    stampPlace(this, row);
  }

  get children(): readonly XmlElement[] {
    return this.#children ?? NO_CHILDREN;
  }

  append(child: ReadElement): void {
    this.#children ??= [];
    this.#children.push(child);
  }

  child(name: string): XmlElement | undefined {
    return this.children.find((child) => child.name === name);
  }

  all(name: string): readonly XmlElement[] {
    return this.children.filter((child) => child.name === name);
  }

  textOf(name: string): string | undefined {
    return this.child(name)?.text;
  }
}
