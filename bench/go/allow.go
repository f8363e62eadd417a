package main

import (
	"time"

	"golang.org/x/time/rate"
)

// Never refuses in a benchmark, and a host that was called once owes time for as long as it runs.
func neverRefuses() *rate.Limiter {
	return rate.NewLimiter(1, 1e8)
}

func allowOne(params Params) Answer {
	limiter := neverRefuses()
	return nanosecondsPerCall(params, func(count int) (granted int) {
		for i := 0; i < count; i++ {
			if limiter.Allow() {
				granted++
			}
		}
		return granted
	})
}

func allowMany(params Params) Answer {
	names := hostNames(params.Hosts)
	order := shuffled(params.Hosts)
	limiters := map[string]*rate.Limiter{}
	take := func(name string) bool {
		limiter, ok := limiters[name]
		if !ok {
			limiter = neverRefuses()
			limiters[name] = limiter
		}
		return limiter.Allow()
	}
	for _, name := range names {
		take(name)
	}
	next := 0
	return nanosecondsPerCall(params, func(count int) (granted int) {
		for i := 0; i < count; i++ {
			if take(names[order[next]]) {
				granted++
			}
			next++
			if next == len(order) {
				next = 0
			}
		}
		return granted
	})
}

func nanosecondsPerCall(params Params, loop func(count int) int) Answer {
	loop(params.Count)
	times := []float64{}
	for i := 0; i < params.Samples; i++ {
		start := time.Now()
		if loop(params.Count) != params.Count {
			fail("calls were refused")
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/float64(params.Count))
	}
	return Answer{"ns": median(times)}
}
