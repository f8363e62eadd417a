package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// waiters lets one goroutine each wait its turn. Its heap counts the stacks of the goroutines too: that is where they wait.
func waiters(params Params) Answer {
	before := inUseBytes()
	cpuAtStart := cpuUs()
	limiter := params.Limit.limiter()
	zero := time.Now()
	never := context.Background()
	shared, cancel := context.WithCancel(never)
	var everybody, theCancelled sync.WaitGroup
	var started, cancelled, startedInLoop, lastNs, loopEndNs int64
	atomic.StoreInt64(&loopEndNs, 1<<62)

	everybody.Add(params.Waiters)
	for i := 0; i < params.Waiters; i++ {
		ctx := never
		if params.CancelHalf && i%2 == 1 {
			ctx = shared
			theCancelled.Add(1)
		}
		go func() {
			defer everybody.Done()
			err := limiter.Wait(ctx)
			if ctx == shared {
				defer theCancelled.Done()
			}
			if err != nil {
				atomic.AddInt64(&cancelled, 1)
				return
			}
			atNs := int64(time.Since(zero))
			atomic.AddInt64(&started, 1)
			if atNs <= atomic.LoadInt64(&loopEndNs) {
				atomic.AddInt64(&startedInLoop, 1)
			}
			raise(&lastNs, atNs)
		}()
	}
	answer := Answer{}
	peak := inUseBytes()
	if params.CancelHalf {
		runtime.GC()
		cpuAtAbort := cpuUs()
		abortAt := time.Now()
		cancel()
		theCancelled.Wait()
		answer["cancelUs"] = float64(time.Since(abortAt).Nanoseconds()) / 1e3 / float64(cancelled)
		answer["cancelCpuUs"] = (cpuUs() - cpuAtAbort) / float64(cancelled)
	}
	atomic.StoreInt64(&loopEndNs, int64(time.Since(zero)))
	stop := make(chan struct{})
	go func() {
		everybody.Wait()
		close(stop)
	}()
	for running := true; running; {
		select {
		case <-stop:
			running = false
		case <-time.After(50 * time.Millisecond):
			if now := inUseBytes(); now > peak {
				peak = now
			}
		}
	}
	cancel()
	afterBurst := float64(started-startedInLoop) - float64(params.Limit.Burst)
	if afterBurst < 0 {
		afterBurst = 0
	}
	answer["cpuUs"] = (cpuUs() - cpuAtStart) / float64(params.Waiters)
	answer["lateMs"] = float64(lastNs-loopEndNs)/1e6 - afterBurst*params.Limit.PerMs/params.Limit.Count
	answer["peakMB"] = (peak - before) / 1e6
	return answer
}

func raise(highest *int64, value int64) {
	for {
		seen := atomic.LoadInt64(highest)
		if value <= seen || atomic.CompareAndSwapInt64(highest, seen, value) {
			return
		}
	}
}

func inUseBytes() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}
