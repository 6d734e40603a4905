package flexvolume

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/volume"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

const (
	// nameWait is how long the first question for a name may keep its asker, who often holds a lock of kubelet or of
	// the controller. A driver that takes longer goes on; who asks later gets its answer.
	nameWait = 2 * time.Second
	// nameRetry is how long a failure is given as the answer before the driver is asked again.
	nameRetry = time.Second
	// maxNames bounds the answers that are remembered.
	maxNames = 10000
)

// GetVolumeName is the volume's name in its storage. It is the second part of the volume's unique name, under which kubelet and the
// attach-detach controller know it and which stands in the node's status; detach is called with it.
//
// The driver is asked once for the same volume. Its answer stays when the driver is updated, because volumes in use are known by it.
func (p *plugin) GetVolumeName(spec *volume.Spec) (string, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return "", err
	}
	wanted := source.volume(spec.Name())
	return p.names.find(p.key(wanted), func() (string, error) {
		driver, err := p.inUse()
		if err != nil {
			return "", err
		}
		return driver.VolumeName(context.Background(), wanted)
	})
}

// key is everything that a driver is told on getvolumename, and who it is.
func (p *plugin) key(volume engine.Volume) string {
	encoded, err := json.Marshal(volume)
	if err != nil {
		panic(err) // it has but text in it
	}
	return p.name + string(encoded)
}

// names remembers the answers of drivers to getvolumename.
type names struct {
	mu      sync.Mutex
	answers map[string]*answer
}

// answer is one answer, or one that is waited for. Its name and err are valid after done is closed.
type answer struct {
	began time.Time
	done  chan struct{}
	name  string
	err   error
	until time.Time // when a failure is forgotten
}

func newNames() *names { return &names{answers: map[string]*answer{}} }

// find is the answer to key, for which ask is called at most once at a time.
func (n *names) find(key string, ask func() (string, error)) (string, error) {
	a := n.begin(key, ask)
	// Only what is left of nameWait since the question began: later askers must not add up.
	wait := time.NewTimer(time.Until(a.began.Add(nameWait)))
	defer wait.Stop()
	select {
	case <-a.done:
		return a.name, a.err
	default:
	}
	select {
	case <-a.done:
		return a.name, a.err
	case <-wait.C:
		return "", fmt.Errorf("get name of volume: getvolumename has been running for %s", time.Since(a.began).Round(time.Second))
	}
}

// begin is the answer to key, which it starts to get if there is none.
func (n *names) begin(key string, ask func() (string, error)) *answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.answers[key]; a != nil && !a.forgotten() {
		return a
	}
	n.bound()
	a := &answer{began: time.Now(), done: make(chan struct{})}
	n.answers[key] = a
	// The driver's own deadline ends it.
	go func() {
		defer close(a.done)
		a.name, a.err = ask()
		a.until = time.Now().Add(nameRetry)
	}()
	return a
}

// known is the answer to key if there is one already.
func (n *names) known(key string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.answers[key]
	if a == nil || !a.finished() || a.err != nil {
		return "", false
	}
	return a.name, true
}

// set notes a name that is known from before a restart.
func (n *names) set(key, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers[key] != nil {
		return
	}
	n.bound()
	a := &answer{done: make(chan struct{}), name: name}
	close(a.done)
	n.answers[key] = a
}

// bound makes room for one more answer.
func (n *names) bound() {
	for key, a := range n.answers {
		if len(n.answers) < maxNames {
			return
		}
		if a.finished() {
			delete(n.answers, key)
		}
	}
}

func (a *answer) finished() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (a *answer) forgotten() bool { return a.finished() && a.err != nil && time.Now().After(a.until) }
