const HASHED = "sha256:";
/** What every database keeps as it is, as part of an index. */
const BYTES_MOST = 2_000;
// Control characters, and halves of characters, which would come back as others.
const ODD = /[\p{Cc}\p{Surrogate}]/u;

/** The name of a cell in a database: the key itself, or a hash of one that is empty, longer than 2,000 bytes, or has characters that a database may not keep. */
export async function cellName(key: string): Promise<string> {
  // No character of UTF-16 takes more than three bytes.
  const fits = key.length * 3 <= BYTES_MOST || new TextEncoder().encode(key).length <= BYTES_MOST;
  if (fits && key !== "" && !key.startsWith(HASHED) && !ODD.test(key)) return key;
  const units = Uint16Array.from({ length: key.length }, (_, index) => key.charCodeAt(index));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", units));
  return HASHED + Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
