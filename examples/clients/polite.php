<?php
// Fetches URLs politely: asks the service for a turn, fetches, and tells the service how the site answered.
// Usage: php polite.php URL …      POLITELY_URL and POLITELY_TOKEN say where the service is and who asks.

const OPEN_END = 86400.0; // A turn may be long in coming: the answer is held open until then.
const HOLD_MS = 600000; // Longer than any page takes; a turn is free again after it, whatever became of who asked.

function ask(string $path, array $question): ?array
{
    $headers = ["Content-Type: application/json"];
    if (getenv("POLITELY_TOKEN")) $headers[] = "Authorization: Bearer " . getenv("POLITELY_TOKEN");
    $body = json_encode($question, JSON_INVALID_UTF8_SUBSTITUTE); // A site's headers may have any bytes, JSON may not.
    $http = ["method" => "POST", "header" => $headers, "content" => $body, "timeout" => OPEN_END, "ignore_errors" => true];
    $service = getenv("POLITELY_URL") ?: "http://127.0.0.1:8787";
    $answer = @file_get_contents($service . $path, false, stream_context_create(["http" => $http]));
    if ($answer === false || !preg_match("/ 2\d\d/", $http_response_header[0])) throw new Exception("$path: " . ($answer ?: "no answer"));
    return json_decode($answer, true);
}

/** Waits for the site's turn and gives status and body. */
function polite_get(string $url): array
{
    $permit = ask("/v1/acquire", ["domain" => $url, "ttlMs" => HOLD_MS])["permit"];
    $outcome = ["outcome" => "server_error"];
    try {
        $context = stream_context_create(["http" => ["ignore_errors" => true, "follow_location" => 0, "timeout" => 60.0]]);
        $body = @file_get_contents($url, false, $context);
        if ($body === false) throw new Exception("$url did not answer");
        $headers = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(":", $line, 2);
            $headers[strtolower($name)] = trim($value);
        }
        $status = (int) explode(" ", $http_response_header[0])[1];
        $outcome = ["status" => $status, "headers" => $headers];
        return [$status, $body];
    } finally {
        try {
            ask("/v1/release", ["permit" => $permit] + $outcome);
        } catch (Throwable $problem) { // The page is there all the same.
            fwrite(STDERR, "not released $url " . $problem->getMessage() . "\n");
        }
    }
}

foreach (array_slice($argv, 1) as $url) {
    try {
        echo polite_get($url)[0], " $url\n";
    } catch (Throwable $error) { // No turn, or no answer: the next one goes on.
        echo "failed $url ", $error->getMessage(), "\n";
    }
}
