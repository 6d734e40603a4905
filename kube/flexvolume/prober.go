package flexvolume

import (
	"errors"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/volume"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// Options adjust a prober.
type Options struct {
	// InUse says whether a volume of a driver may still be in use. A removed driver is dropped, and the copy that the registry kept
	// of it too, only when this is false and no pod waits for it. Nil: it is kept as long as the process lives, as the attach-detach controller needs it, which may
	// have to detach.
	InUse func(driver string) bool
	// Attachments are where what the manager attaches is noted. Nil: it is not.
	Attachments *Attachments
}

// useInterval is how often it is looked whether removed drivers are still in use.
const useInterval = 5 * time.Second

// NewProber makes the prober of one volume plug-in manager. The registry must run; it should be ready before the manager
// starts, so that volumes in use are reconstructed with their drivers.
func NewProber(registry *engine.Registry, options Options) volume.DynamicPluginProber {
	if options.Attachments == nil {
		options.Attachments = &Attachments{}
	}
	return &prober{registry: registry, options: options, names: newNames(), known: map[string]*plugin{}}
}

// prober compares what the registry knows with what it has told before.
type prober struct {
	registry *engine.Registry
	options  Options
	names    *names

	mu         sync.Mutex
	generation uint64
	told       bool
	known      map[string]*plugin // the drivers that the manager has
	removed    map[string]bool    // those of them that are not installed any more
	looked     time.Time
}

// Init has nothing to do: the registry runs already.
func (p *prober) Init() error { return nil }

// Probe tells of drivers that have come, and of those that have gone and are not in use. It is called at every look-up of a plug-in,
// under the manager's lock, and costs nothing while nothing changes.
//
// A driver comes with its first successful init, because nobody knows before whether it has attach. Later versions of it need no
// event: the plug-in asks the registry.
func (p *prober) Probe() ([]volume.ProbeEvent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.dropUnused()
	generation := p.registry.Generation()
	if p.told && generation == p.generation {
		return nil, err
	}
	p.told, p.generation = true, generation

	var events []volume.ProbeEvent
	now := map[string]*plugin{}
	p.removed = map[string]bool{}
	for _, e := range p.registry.List() {
		if e.Driver == nil {
			continue
		}
		if e.State == engine.StateRemoved {
			p.removed[e.Name] = true
		}
		if now[e.Name] = p.known[e.Name]; now[e.Name] == nil {
			now[e.Name] = &plugin{name: e.Name, registry: p.registry, names: p.names, attachments: p.options.Attachments}
			events = append(events, volume.ProbeEvent{Op: volume.ProbeAddOrUpdate, PluginName: e.Name, Plugin: now[e.Name]})
		}
	}
	for name := range p.known {
		if now[name] == nil {
			events = append(events, volume.ProbeEvent{Op: volume.ProbeRemove, PluginName: name})
		}
	}
	p.known = now
	return events, err
}

// dropUnused makes the registry forget removed drivers that no volume uses. One that pods wait for stays: its plug-in tells them that it was removed,
// while kubelet would say to nobody but its log that there is none.
func (p *prober) dropUnused() error {
	if len(p.removed) == 0 || p.options.InUse == nil || time.Since(p.looked) < useInterval {
		return nil
	}
	p.looked = time.Now()
	var problems []error
	for name := range p.removed {
		if !p.options.InUse(name) && !p.known[name].askedSince(time.Now().Add(-2*useInterval)) {
			problems = append(problems, p.registry.Forget(name))
		}
	}
	return errors.Join(problems...)
}
