/** MSCONS: metered services consumption reports in UN/EDIFACT. */
import { defineMapper, RowError } from "headgate/mapper";
import { targetMaker } from "../_formats/target.ts";
import { unitConverter } from "../_formats/units.ts";
import { Envelope, fault } from "./envelope.ts";
import { Message } from "./message.ts";
import { component, readSegments, type Segment } from "./segments.ts";
import { settings } from "./settings.ts";

/** BGM function of a message that cancels an earlier one. */
const CANCELLATION = "1";

export default defineMapper({
  name: "mscons",
  summary: "EDIFACT MSCONS: load profiles and meter readings of energy markets (EDI@Energy, Ediel)",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, reject, eachRow, number, time, unit, finding }) {
    const segments = readSegments(file.bytes());
    const tools = {
      settings,
      emit,
      reject,
      number,
      time,
      targetOf: targetMaker(settings.target, settings.rename),
      converter: unitConverter(settings.units, unit),
      // Known when the first segment was read.
      get separators() {
        return segments.separators;
      },
    };
    const envelope = new Envelope();
    let message: Message | undefined;
    let unusable = 0;

    function takeSegment(segment: Segment): void {
      if (!envelope.take(segment)) return;
      if (segment.tag === "UNH") {
        const type = component(segment, 1);
        if (type !== "MSCONS") throw fault(segment, `the message is ${type}, not MSCONS`);
        message = new Message(tools);
      } else if (segment.tag === "UNT") {
        message?.finish();
        unusable += message?.unusable ?? 0;
        message = undefined;
      } else if (segment.tag === "BGM" && component(segment, 2) === CANCELLATION) {
        message = undefined;
        throw new RowError(
          `the message ${component(segment, 1)} cancels an earlier one, which cannot be done by a push`,
          {
            hint: "Its quantities are not pushed. What the cancelled message brought has to be corrected by a person.",
          },
        );
      } else message?.take(segment);
    }

    await eachRow(segments.chunks, takeSegment);
    envelope.finish();
    if (unusable > 0)
      finding({
        kind: "status",
        message: "quantities that the sender marked as unusable were left out",
        count: unusable,
      });
  },
});
