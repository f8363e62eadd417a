// Asks for every address at once and prints the statuses.
const answers = await Promise.all(process.argv.slice(2).map(async (url) => fetch(url)));
console.log(answers.map(({ status }) => status).join(" "));
