/** Resolves in a later turn of the event loop: what is due by now happens before. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
