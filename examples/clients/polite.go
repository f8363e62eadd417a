// Fetches URLs politely: asks the service for a turn, fetches, and tells the service how the site answered.
// Usage: go run polite.go URL …      POLITELY_URL and POLITELY_TOKEN say where the service is and who asks.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Longer than any page takes; a turn is free again after it, whatever became of who asked.
const holdMs = 600_000

type fields map[string]any

// A redirect is a request of its own, with a turn of its own.
var site = http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       5 * time.Minute,
	// Over a connection that was kept, Go sends again by itself what a site breaks off: a request without a turn.
	Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
}

func ask(path string, question fields) (answer fields, err error) {
	service := os.Getenv("POLITELY_URL")
	if service == "" {
		service = "http://127.0.0.1:8787"
	}
	body, _ := json.Marshal(question)
	request, err := http.NewRequest("POST", service+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token := os.Getenv("POLITELY_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s: %s", path, text)
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

// PoliteGet waits for the site's turn and gives status and body.
func PoliteGet(url string) (status int, body []byte, err error) {
	turn, err := ask("/v1/acquire", fields{"domain": url, "ttlMs": holdMs})
	if err != nil {
		return 0, nil, err
	}
	outcome := fields{"permit": turn["permit"], "outcome": "server_error"}
	defer func() {
		if _, problem := ask("/v1/release", outcome); problem != nil { // The page is there all the same.
			fmt.Fprintln(os.Stderr, "not released", url, problem)
		}
	}()
	response, err := site.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	headers := fields{}
	for name := range response.Header {
		headers[name] = response.Header.Get(name)
	}
	outcome = fields{"permit": turn["permit"], "status": response.StatusCode, "headers": headers}
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

func main() {
	for _, url := range os.Args[1:] {
		if status, _, err := PoliteGet(url); err != nil {
			fmt.Println("failed", url, err) // No turn, or no answer: the next one goes on.
		} else {
			fmt.Println(status, url)
		}
	}
}
