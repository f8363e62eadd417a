// Fails after a request.
await (await fetch(process.argv[2])).text();
throw new Error("the program's own mistake");
