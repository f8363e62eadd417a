package main

import (
	"math"
	"sync"
	"time"
)

func pacing(params Params) Answer {
	perKey := int(math.Round(params.Seconds * 1000 * params.Limit.Count / params.Limit.PerMs))
	keys := make([]starts, params.Keys)
	zero := time.Now()
	var everybody sync.WaitGroup
	everybody.Add(perKey * params.Keys)
	for key := range keys {
		own := &keys[key]
		limiter := params.Limit.limiter()
		for i := 0; i < perKey; i++ {
			go func() {
				defer everybody.Done()
				own.add(limiter, zero)
			}()
		}
	}
	cpuAtStart, start := cpuUs(), time.Now()
	everybody.Wait()
	cpuPercent := (cpuUs() - cpuAtStart) / 10 / sinceMs(start)

	gapUs := params.Limit.PerMs / params.Limit.Count * 1000
	shares, shortGaps, shortestByUs := 0.0, 0.0, 0.0
	for key := range keys {
		us := keys[key].sortedUs()
		for i := 1; i < len(us); i++ {
			missingUs := gapUs - float64(us[i]-us[i-1])
			if missingUs > 0 {
				shortGaps++
			}
			shortestByUs = math.Max(shortestByUs, missingUs)
		}
		shares += float64(len(us)-1) * gapUs / float64(us[len(us)-1]-us[0])
	}
	return Answer{
		"sharePercent": 100 * shares / float64(params.Keys),
		"shortGaps":    shortGaps,
		"shortestByMs": shortestByUs / 1000,
		"cpuPercent":   cpuPercent,
	}
}
