import { type Frame, isPrintable, NAMES_TAKEN } from "./document.js";

const NAMESPACE_LENGTH_MOST = 255;
const NAME_LENGTH_MOST = 250;
const VALUE_LENGTH_MOST = 1_024;
/** CloudWatch takes 30; one is the host. */
const DIMENSIONS_MOST = 29;

/** Reads namespace and dimensions; throws `TypeError` or `RangeError` for what CloudWatch would drop without a word. */
export function readFrame(namespace: string, dimensions: Readonly<Record<string, string>> = {}): Frame {
  if (typeof namespace !== "string") throw new TypeError(`namespace must be a text; got ${String(namespace)}.`);
  const isNamespace =
    isPrintable(namespace) && namespace.length <= NAMESPACE_LENGTH_MOST && !/^(:|AWS\/)/.test(namespace);
  if (!isNamespace) {
    throw new RangeError(
      `namespace must have 1 to ${NAMESPACE_LENGTH_MOST} printable characters and begin neither with ":" nor with "AWS/"; got ${JSON.stringify(namespace.slice(0, 60))}.`,
    );
  }
  const entries = Object.entries(dimensions);
  if (entries.length > DIMENSIONS_MOST) {
    throw new RangeError(
      `dimensions may have ${DIMENSIONS_MOST} entries at most, beside the host; got ${entries.length}.`,
    );
  }
  for (const [name, value] of entries) checkDimension(name, value);
  return { namespace, dimensions: { ...dimensions } };
}

function checkDimension(name: string, value: unknown): void {
  if (!isPrintable(name) || name.length > NAME_LENGTH_MOST || name.startsWith(":") || NAMES_TAKEN.includes(name)) {
    throw new RangeError(
      `dimensions: ${JSON.stringify(name.slice(0, 60))} cannot be a name. It needs 1 to ${NAME_LENGTH_MOST} printable characters, no ":" in front, and must not be a metric's.`,
    );
  }
  if (typeof value !== "string") throw new TypeError(`dimensions.${name} must be a text; got ${String(value)}.`);
  if (!isPrintable(value) || value.length > VALUE_LENGTH_MOST) {
    throw new RangeError(`dimensions.${name} must have 1 to ${VALUE_LENGTH_MOST} printable characters.`);
  }
}
