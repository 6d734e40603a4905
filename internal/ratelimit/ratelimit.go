// Package ratelimit limits rates separately for each key, such as a tenant.
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiters contains a limiter for each key that was used recently. It is safe for concurrent use
// after Rate and Burst have been set.
type Limiters[K comparable] struct {
	// Rate is the number of events per second for each key. Burst is the number of a key's events
	// that can happen at the same time.
	Rate  rate.Limit
	Burst int

	mu       sync.Mutex
	limiters map[K]*rate.Limiter
}

// At returns a key's limiter. now is the current time. To save memory, At removes limiters that
// are full again. A new limiter is also full, so the removal does not change any limit.
func (l *Limiters[K]) At(key K, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limiter, ok := l.limiters[key]; ok {
		return limiter
	}
	for other, unused := range l.limiters {
		if unused.TokensAt(now) >= float64(l.Burst) {
			delete(l.limiters, other)
		}
	}
	if l.limiters == nil {
		l.limiters = map[K]*rate.Limiter{}
	}
	limiter := rate.NewLimiter(l.Rate, l.Burst)
	l.limiters[key] = limiter
	return limiter
}

// Len returns the number of limiters in memory.
func (l *Limiters[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.limiters)
}
