/**
 * Makes a question that is put at most once at a time, and whose answer is given again for `forMs` after it came. One that fails is put again with the next
 * call.
 */
export function seldom<Answer>(ask: () => Promise<Answer>, forMs: number, nowMs: () => number): () => Promise<Answer> {
  let asking: Promise<Answer> | undefined;
  let known: { readonly answer: Answer; readonly untilMs: number } | undefined;
  const put = async (): Promise<Answer> => {
    try {
      const answer = await ask();
      known = { answer, untilMs: nowMs() + forMs };
      return answer;
    } finally {
      asking = undefined;
    }
  };
  return () => {
    if (known !== undefined && nowMs() < known.untilMs) return Promise.resolve(known.answer);
    asking ??= put();
    return asking;
  };
}
