package image

import (
	"context"
	"sync"
	"time"
)

// meter measures the responses to the requests of one pull. It counts only the time during which a
// request waits for data, because unpacking can take longer.
type meter struct {
	mutex     sync.Mutex
	requests  int
	openSince time.Time
	waitTime  time.Duration
	bytes     int64
}

type meterKey struct{}

// meterOf returns a context's meter. If the context has none, it returns a new meter, whose values
// are never read.
func meterOf(ctx context.Context) *meter {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		return m
	}
	return &meter{}
}

func (m *meter) open() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.requests++; m.requests == 1 {
		m.openSince = time.Now()
	}
}

func (m *meter) close() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.requests--; m.requests == 0 {
		m.waitTime += time.Since(m.openSince)
	}
}

func (m *meter) add(bytes int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.bytes += int64(bytes)
}

// total returns the time during which requests were open, and the number of bytes in their
// responses.
func (m *meter) total() (elapsed time.Duration, bytes int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	elapsed = m.waitTime
	if m.requests > 0 {
		elapsed += time.Since(m.openSince)
	}
	return elapsed, m.bytes
}
