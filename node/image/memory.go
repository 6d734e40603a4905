package image

import (
	"slices"
	"sync"
	"time"
)

// memory limits the memory that containerd uses to unpack layers. All layers share one limit.
type memory struct {
	// maxGrowth is the memory in bytes that containerd may use in addition to that without layers.
	maxGrowth int64

	mutex  sync.Mutex
	layers []*layerMemory // in the order of their start
	// limit is the resident memory in bytes above which layers end. It increases only if no layer was
	// unpacked for idleTime, because containerd keeps the memory of an earlier layer for a while.
	limit int64
	// idle is when the last layer was removed.
	idle time.Time
	// end is when exceeds last ended a layer. peak is the resident memory at that time.
	end  time.Time
	peak int64
}

// layerMemory identifies a layer that is being unpacked.
type layerMemory struct{ _ byte }

const (
	// returnTime is how long containerd takes to return the memory of a layer that was ended.
	returnTime = 2 * time.Second
	// idleTime is the time without layers after which containerd has freed the memory of earlier
	// layers: Go collects garbage every two minutes.
	idleTime = 5 * time.Minute
)

// add adds a layer that the process unpacks.
func (m *memory) add(pid int) (*layerMemory, error) {
	now, err := residentMemory(pid)
	if err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	isIdle := len(m.layers) == 0 && time.Since(m.idle) > idleTime
	if isIdle || now+m.maxGrowth < m.limit {
		m.limit = now + m.maxGrowth
	}
	layer := &layerMemory{}
	m.layers = append(m.layers, layer)
	return layer, nil
}

// remove removes a layer.
func (m *memory) remove(layer *layerMemory) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.layers = slices.DeleteFunc(m.layers, func(other *layerMemory) bool { return other == layer })
	m.idle = time.Now()
}

// exceeds reports whether the unpacking of a layer must be canceled, because the resident memory of
// the process exceeds the limit. The layer that started last is canceled first, and the next one
// only if memory continues to grow, so that layers that started earlier can finish.
func (m *memory) exceeds(layer *layerMemory, resident int64) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if resident <= m.limit {
		m.peak = 0
		return false
	}
	if m.layers[len(m.layers)-1] != layer || time.Since(m.end) < returnTime || resident <= m.peak {
		return false
	}
	m.layers = m.layers[:len(m.layers)-1]
	m.end, m.peak = time.Now(), resident
	return true
}
