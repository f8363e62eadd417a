package main

import (
	"context"
	"sort"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// starts collects when each call got through, in milliseconds since zero.
type starts struct {
	mutex sync.Mutex
	ms    []float64
}

func (s *starts) add(limiter *rate.Limiter, zero time.Time) {
	if limiter.Wait(context.Background()) != nil {
		return
	}
	atMs := sinceMs(zero)
	s.mutex.Lock()
	s.ms = append(s.ms, atMs)
	s.mutex.Unlock()
}

func (s *starts) sortedUs() []int64 {
	us := make([]int64, len(s.ms))
	for i, ms := range s.ms {
		us[i] = int64(ms*1000 + 0.5)
	}
	sort.Slice(us, func(a, b int) bool { return us[a] < us[b] })
	return us
}

func window(params Params) Answer {
	limiter := params.Limit.limiter()
	zero := time.Now()
	var all starts
	var everybody sync.WaitGroup
	for _, step := range params.Plan {
		time.Sleep(time.Duration(step[0])*time.Millisecond - time.Since(zero))
		everybody.Add(step[1])
		for i := 0; i < step[1]; i++ {
			go func() {
				defer everybody.Done()
				all.add(limiter, zero)
			}()
		}
	}
	everybody.Wait()
	us := all.sortedUs()
	answer := Answer{"most": mostWithin(us, 1_000_000), "forgiving": mostWithin(us, 995_000)}
	if len(us) >= 100 {
		answer["hundredthS"] = float64(us[99]-us[0]) / 1e6
	}
	return answer
}

func mostWithin(us []int64, spanUs int64) float64 {
	first, highest := 0, 0
	for last := range us {
		for us[last]-us[first] >= spanUs {
			first++
		}
		if last-first+1 > highest {
			highest = last - first + 1
		}
	}
	return float64(highest)
}
