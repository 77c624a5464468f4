/**
 * The frame of an interchange: UNB and UNZ around it, UNH and UNT around each message, with their references and
 * counts.
 */
import { FileError } from "headgate/mapper";
import { component, type Segment } from "./segments.ts";

const CUT_OFF = "Was the file cut off, or changed after it was written? Ask for it again.";

export class Envelope {
  #interchange: string | undefined;
  #messages = 0;
  #message: string | undefined;
  #segments = 0;
  #groups = 0;
  #group: { readonly reference: string; readonly from: number } | undefined;
  #last: Segment | undefined;

  /** Checks the frame. True for segments within a message, UNH and UNT included. Throws a `FileError`. */
  take(segment: Segment): boolean {
    this.#last = segment;
    if (segment.tag === "UNB") return this.#open(segment);
    if (this.#interchange === undefined) throw fault(segment, `${segment.tag} is outside of an interchange`);
    if (segment.tag === "UNZ") return this.#close(segment);
    if (segment.tag === "UNG") {
      this.#group = { reference: component(segment, 4), from: this.#messages };
      return false;
    }
    if (segment.tag === "UNE") return this.#closeGroup(segment);
    if (segment.tag === "UNH") {
      if (this.#message !== undefined)
        throw fault(segment, `a message begins before the message ${this.#message} ended`, CUT_OFF);
      this.#message = component(segment, 0);
      this.#messages += 1;
      this.#segments = 0;
    }
    if (this.#message === undefined) throw fault(segment, `${segment.tag} is outside of a message`);
    this.#segments += 1;
    if (segment.tag === "UNT") this.#closeMessage(segment);
    return true;
  }

  /** The file has to end with a closed interchange. Throws a `FileError`. */
  finish(): void {
    const last = this.#last;
    if (last === undefined) throw new FileError("the file is empty");
    if (this.#interchange !== undefined)
      throw fault(last, `the interchange ${this.#interchange} ends without UNZ, after ${last.column}`, CUT_OFF);
  }

  #open(segment: Segment): false {
    if (this.#interchange !== undefined)
      throw fault(segment, `an interchange begins before the interchange ${this.#interchange} ended`, CUT_OFF);
    this.#interchange = component(segment, 4);
    this.#messages = 0;
    this.#groups = 0;
    return false;
  }

  #closeMessage(segment: Segment): void {
    if (component(segment, 1) !== this.#message)
      throw fault(
        segment,
        `UNT names the message "${component(segment, 1)}", and UNH "${this.#message ?? ""}"`,
        CUT_OFF,
      );
    const declared = component(segment, 0);
    if (Number(declared) !== this.#segments || declared === "")
      throw fault(
        segment,
        `the message ${this.#message} has ${this.#segments} segments, and UNT counts ${declared}`,
        CUT_OFF,
      );
    this.#message = undefined;
  }

  #closeGroup(segment: Segment): false {
    const group = this.#group;
    this.#group = undefined;
    this.#groups += 1;
    const messages = this.#messages - (group?.from ?? 0);
    if (group === undefined || component(segment, 1) !== group.reference || Number(component(segment, 0)) !== messages)
      throw fault(segment, `UNE does not fit the group that it ends, which has ${messages} messages`, CUT_OFF);
    return false;
  }

  #close(segment: Segment): false {
    if (this.#message !== undefined)
      throw fault(segment, `the interchange ends within the message ${this.#message}`, CUT_OFF);
    const declared = component(segment, 0);
    const counted = this.#groups > 0 ? this.#groups : this.#messages;
    if (Number(declared) !== counted || declared === "")
      throw fault(
        segment,
        `the interchange has ${counted} ${this.#groups > 0 ? "groups" : "messages"}, and UNZ counts ${declared}`,
        CUT_OFF,
      );
    if (component(segment, 1) !== this.#interchange)
      throw fault(
        segment,
        `UNZ names the interchange "${component(segment, 1)}", and UNB "${this.#interchange}"`,
        CUT_OFF,
      );
    this.#interchange = undefined;
    return false;
  }
}

/** A fault of the whole file at a segment. */
export function fault({ row, column, text }: Segment, message: string, hint?: string): FileError {
  return new FileError(message, { row, column, text, ...(hint === undefined ? {} : { hint }) });
}
