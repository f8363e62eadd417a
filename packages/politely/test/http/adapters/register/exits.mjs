// Leaves with the first answer, while one more request is under way and two wait.
const [url] = process.argv.slice(2);
const [first] = [1, 2, 3, 4].map(async () => (await fetch(url)).text());
await first;
setTimeout(() => process.exit(3), 5);
