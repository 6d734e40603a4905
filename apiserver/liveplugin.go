package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
)

// PluginConfig is what the configuration says of an admission plug-in.
type PluginConfig struct {
	// Disabled turns it off.
	Disabled bool
	// Content is its own configuration, YAML or JSON; nil when it is only switched.
	Content []byte
}

// LivePlugins are the admission plug-ins of features that can be configured anew while the server runs.
type LivePlugins struct{ plugins []*livePlugin }

// MakeLive takes charge of those plug-ins of features that are Live: configs, by name, decides which of them are on and what they read,
// until Prepare brings others.
func MakeLive(features []Feature, configs map[string]PluginConfig) *LivePlugins {
	l := &LivePlugins{}
	for _, feature := range features {
		for i, plugin := range feature.Admission {
			if !plugin.Live {
				continue
			}
			live := &livePlugin{Admission: plugin, config: configs}
			feature.Admission[i].New = live.start
			l.plugins = append(l.plugins, live)
		}
	}
	return l
}

// Names are those of the plug-ins.
func (l *LivePlugins) Names() (names []string) {
	for _, plugin := range l.plugins {
		names = append(names, plugin.Name)
	}
	return names
}

// Prepare makes all of them anew. Requests meet the new ones after apply; an error changes nothing.
func (l *LivePlugins) Prepare(configs map[string]PluginConfig) (apply func(), err error) {
	var made []admission.Interface
	var problems []error
	for _, plugin := range l.plugins {
		one, err := plugin.make(configs)
		problems, made = append(problems, err), append(made, one)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return func() {
		for i, plugin := range l.plugins {
			plugin.current.Store(&made[i])
		}
	}, nil
}

// livePlugin stands in the server's chain for a plug-in that is exchanged. It passes on what the server gives to plug-ins.
type livePlugin struct {
	Admission
	config  map[string]PluginConfig // of the start
	current atomic.Pointer[admission.Interface]

	authorizer authorizer.Authorizer
	informers  informers.SharedInformerFactory
}

var (
	_ admission.MutationInterface                  = &livePlugin{}
	_ admission.ValidationInterface                = &livePlugin{}
	_ admission.InitializationValidator            = &livePlugin{}
	_ initializer.WantsAuthorizer                  = &livePlugin{}
	_ initializer.WantsExternalKubeInformerFactory = &livePlugin{}
)

// start is the factory that the server calls once.
func (p *livePlugin) start(io.Reader) (admission.Interface, error) {
	made, err := p.build(p.config)
	if err != nil {
		return nil, err
	}
	p.current.Store(&made)
	return p, nil
}

// build makes the plug-in, or nil when it is off.
func (p *livePlugin) build(configs map[string]PluginConfig) (admission.Interface, error) {
	config, known := configs[p.Name]
	if config.Disabled || p.Optional && !known {
		return nil, nil
	}
	var content io.Reader
	if config.Content != nil {
		content = bytes.NewReader(config.Content)
	}
	return p.New(content)
}

// make is build for a server that runs: the plug-in gets what the server has given.
func (p *livePlugin) make(configs map[string]PluginConfig) (admission.Interface, error) {
	made, err := p.build(configs)
	if err != nil || made == nil {
		return nil, err
	}
	give(made, p.authorizer, p.informers)
	if checks, ok := made.(admission.InitializationValidator); ok {
		if err := checks.ValidateInitialization(); err != nil {
			return nil, fmt.Errorf("make admission plug-in %s: %w", p.Name, err)
		}
	}
	return made, nil
}

// give hands a plug-in what it wants.
func give(plugin admission.Interface, a authorizer.Authorizer, factory informers.SharedInformerFactory) {
	if wants, ok := plugin.(initializer.WantsAuthorizer); ok && a != nil {
		wants.SetAuthorizer(a)
	}
	if wants, ok := plugin.(initializer.WantsExternalKubeInformerFactory); ok && factory != nil {
		wants.SetExternalKubeInformerFactory(factory)
	}
}

// now is the plug-in that counts, nil while it is off.
func (p *livePlugin) now() admission.Interface {
	if current := p.current.Load(); current != nil {
		return *current
	}
	return nil
}

// SetAuthorizer gives the API server's authorizer.
func (p *livePlugin) SetAuthorizer(a authorizer.Authorizer) {
	p.authorizer = a
	give(p.now(), a, nil)
}

// SetExternalKubeInformerFactory gives the API server's caches.
func (p *livePlugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.informers = factory
	// Each plug-in finds them running, also one that is switched on later.
	factory.Core().V1().Namespaces().Informer()
	give(p.now(), nil, factory)
}

// ValidateInitialization says whether the plug-in was given what it wants.
func (p *livePlugin) ValidateInitialization() error {
	if checks, ok := p.now().(admission.InitializationValidator); ok {
		return checks.ValidateInitialization()
	}
	return nil
}

// Handles tells whether the plug-in looks at an operation.
func (p *livePlugin) Handles(operation admission.Operation) bool {
	plugin := p.now()
	return plugin != nil && plugin.Handles(operation)
}

// Admit lets the plug-in change an object. It may have been exchanged since Handles was asked.
func (p *livePlugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := p.now().(admission.MutationInterface); ok && plugin.Handles(a.GetOperation()) {
		return plugin.Admit(ctx, a, o)
	}
	return nil
}

// Validate lets the plug-in check an object.
func (p *livePlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := p.now().(admission.ValidationInterface); ok && plugin.Handles(a.GetOperation()) {
		return plugin.Validate(ctx, a, o)
	}
	return nil
}
