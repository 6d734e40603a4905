package image

import (
	"slices"
	"sync"
	"time"
)

// memory limits the memory that containerd uses for unpacking layers. All layers share one limit.
type memory struct {
	// maxGrowth is the memory, in bytes, that containerd may use in addition to the memory that it
	// uses without layers.
	maxGrowth int64

	mutex  sync.Mutex
	layers []*layerMemory // in the order in which the layers were started
	// limit is the resident memory in bytes above which the unpacking of layers is canceled. It
	// increases only if no layer has been unpacked for idleTime, because containerd keeps the
	// memory used by earlier layers for a while.
	limit int64
	// idle is the time when the last layer was removed.
	idle time.Time
	// end is the time when the exceeds method last canceled a layer. peak is the resident memory,
	// in bytes, at that time.
	end  time.Time
	peak int64
}

// layerMemory identifies a layer that is being unpacked.
type layerMemory struct{ _ byte }

const (
	// returnTime is the time that containerd needs to release the memory of a canceled layer.
	returnTime = 2 * time.Second
	// idleTime is an upper bound on the time that containerd needs after the last layer to release
	// the memory of earlier layers: Go runs its garbage collector at least every two minutes.
	idleTime = 5 * time.Minute
)

// add adds a layer that the process is unpacking.
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

// exceeds reports whether the unpacking of a layer must be canceled because the process's resident
// memory exceeds the limit. The layer that started last is canceled first. The next layer is
// canceled only if memory usage continues to grow, so that layers that started earlier can finish.
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
