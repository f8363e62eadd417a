// Measures golang.org/x/time/rate the way measures/*.mjs measure the rest.
// Usage: go-bench MEASURE PARAMS, the second as JSON; prints one line of JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Params holds what any measure may be given; each reads its own part.
type Params struct {
	Count      int
	Samples    int
	Hosts      int
	Waiters    int
	CancelHalf bool
	Keys       int
	Seconds    float64
	Plan       [][2]int
	Limit      Limit
}

// Limit is Count starts per PerMs, and Burst of them at once.
type Limit struct {
	Count float64
	PerMs float64
	Burst int
}

func (l Limit) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.Count/l.PerMs*1000), l.Burst)
}

// Answer is what a measure found, by metric.
type Answer map[string]float64

var measures = map[string]func(Params) Answer{
	"tryacquire": allowOne,
	"hosts":      allowMany,
	"memory":     memory,
	"waiters":    waiters,
	"window":     window,
	"pacing":     pacing,
}

func main() {
	var params Params
	if len(os.Args) != 3 || measures[os.Args[1]] == nil {
		fail("usage: go-bench MEASURE PARAMS")
	}
	if err := json.Unmarshal([]byte(os.Args[2]), &params); err != nil {
		fail(err.Error())
	}
	line, err := json.Marshal(measures[os.Args[1]](params))
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(string(line))
}

func fail(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(1)
}

func hostNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("h%d.example.com", i)
	}
	return names
}

// shuffled gives the same order as harness/hosts.mjs.
func shuffled(count int) []uint32 {
	order := make([]uint32, count)
	for i := range order {
		order[i] = uint32(i)
	}
	state := uint32(2463534242)
	for i := count - 1; i > 0; i-- {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		j := state % uint32(i+1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

func median(numbers []float64) float64 {
	sort.Float64s(numbers)
	middle := len(numbers) / 2
	if len(numbers)%2 == 1 {
		return numbers[middle]
	}
	return (numbers[middle-1] + numbers[middle]) / 2
}

// cpuUs is the CPU the process has used, user and system, in microseconds.
func cpuUs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err.Error())
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1000
}

func sinceMs(start time.Time) float64 {
	return float64(time.Since(start).Nanoseconds()) / 1e6
}
