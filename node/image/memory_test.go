package image

import (
	"os"
	"testing"
	"time"
)

func TestLastLayerEndsIfMemoryGrows(t *testing.T) {
	m := &memory{maxGrowth: 100}
	add := func() *layerMemory {
		t.Helper()
		layer, err := m.add(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return layer
	}
	first, second := add(), add()
	limit := m.limit
	for _, step := range []struct {
		name     string
		layer    *layerMemory
		resident int64
		want     bool
	}{
		{"below the limit", second, limit, false},
		{"an earlier layer", first, limit + 50, false},
		{"the last layer", second, limit + 50, true},
		{"the next layer immediately", first, limit + 90, false},
	} {
		if got := m.exceeds(step.layer, step.resident); got != step.want {
			t.Errorf("%s: exceeds is %t", step.name, got)
		}
	}
	m.end = m.end.Add(-2 * returnTime)
	if m.exceeds(first, limit+50) {
		t.Error("a layer ends although memory has not grown since the last one ended")
	}
	if !m.exceeds(first, limit+60) {
		t.Error("the next layer does not end while memory grows")
	}
}

func TestLimitDoesNotGrowWithConsecutiveLayers(t *testing.T) {
	m := &memory{maxGrowth: 1 << 30}
	layer, err := m.add(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	m.remove(layer)
	m.limit = 1 // simulate low memory at the start of the first layer
	if _, err := m.add(os.Getpid()); err != nil || m.limit != 1 {
		t.Errorf("the limit is %d, %v", m.limit, err)
	}
	m.layers, m.idle = nil, time.Now().Add(-2*idleTime)
	if _, err := m.add(os.Getpid()); err != nil || m.limit <= 1 {
		t.Errorf("after an idle time, the limit is %d, %v", m.limit, err)
	}
}
