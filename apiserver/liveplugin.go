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

// PluginConfig is the configuration of an admission plugin.
type PluginConfig struct {
	// Disabled disables the plugin.
	Disabled bool
	// Content is the plugin's own configuration, as YAML or JSON, or nil if the plugin is not
	// configured.
	Content []byte
}

// LivePlugins contains the features' admission plugins whose configuration can change while the
// server is running.
type LivePlugins struct{ plugins []*livePlugin }

// MakeLive wraps the features' Live plugins. configs maps plugin names to configurations. The
// plugins use configs until Prepare replaces the configurations.
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

// Names returns the names of the plugins.
func (l *LivePlugins) Names() (names []string) {
	for _, plugin := range l.plugins {
		names = append(names, plugin.Name)
	}
	return names
}

// Prepare recreates all plugins with new configurations. Requests use the new plugins after apply
// has been called. If Prepare returns an error, nothing changes.
func (l *LivePlugins) Prepare(configs map[string]PluginConfig) (apply func(), err error) {
	var next []admission.Interface
	var errs []error
	for _, live := range l.plugins {
		plugin, err := live.recreate(configs)
		errs, next = append(errs, err), append(next, plugin)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return func() {
		for i, plugin := range l.plugins {
			plugin.current.Store(&next[i])
		}
	}, nil
}

// livePlugin is a replaceable plugin in the server's admission chain. It passes the server's
// initializers on to the current plugin.
type livePlugin struct {
	Admission
	config  map[string]PluginConfig // the plugins' configurations at startup
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

// start is the plugin factory, which the server calls once.
func (p *livePlugin) start(io.Reader) (admission.Interface, error) {
	plugin, err := p.build(p.config)
	if err != nil {
		return nil, err
	}
	p.current.Store(&plugin)
	return p, nil
}

// build creates the plugin. It returns nil if the plugin is disabled.
func (p *livePlugin) build(configs map[string]PluginConfig) (admission.Interface, error) {
	config, configured := configs[p.Name]
	if config.Disabled || p.Optional && !configured {
		return nil, nil
	}
	var content io.Reader
	if config.Content != nil {
		content = bytes.NewReader(config.Content)
	}
	return p.New(content)
}

// recreate builds and initializes the plugin while the server is running.
func (p *livePlugin) recreate(configs map[string]PluginConfig) (admission.Interface, error) {
	plugin, err := p.build(configs)
	if err != nil || plugin == nil {
		return nil, err
	}
	initialize(plugin, p.authorizer, p.informers)
	if validator, ok := plugin.(admission.InitializationValidator); ok {
		if err := validator.ValidateInitialization(); err != nil {
			return nil, fmt.Errorf("create admission plugin %s: %w", p.Name, err)
		}
	}
	return plugin, nil
}

// initialize passes a plugin the dependencies that it requests.
func initialize(plugin admission.Interface, a authorizer.Authorizer, factory informers.SharedInformerFactory) {
	if wants, ok := plugin.(initializer.WantsAuthorizer); ok && a != nil {
		wants.SetAuthorizer(a)
	}
	if wants, ok := plugin.(initializer.WantsExternalKubeInformerFactory); ok && factory != nil {
		wants.SetExternalKubeInformerFactory(factory)
	}
}

// active returns the current plugin, or nil if it is disabled.
func (p *livePlugin) active() admission.Interface {
	if current := p.current.Load(); current != nil {
		return *current
	}
	return nil
}

// SetAuthorizer stores the API server's authorizer and passes it on.
func (p *livePlugin) SetAuthorizer(a authorizer.Authorizer) {
	p.authorizer = a
	initialize(p.active(), a, nil)
}

// SetExternalKubeInformerFactory stores the API server's informers and passes them on.
func (p *livePlugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.informers = factory
	// The informer must run, because a plugin that requires it might be enabled later.
	factory.Core().V1().Namespaces().Informer()
	initialize(p.active(), nil, factory)
}

// ValidateInitialization checks that the plugin has received the dependencies that it requires.
func (p *livePlugin) ValidateInitialization() error {
	if validator, ok := p.active().(admission.InitializationValidator); ok {
		return validator.ValidateInitialization()
	}
	return nil
}

// Handles reports whether the plugin handles an operation.
func (p *livePlugin) Handles(operation admission.Operation) bool {
	plugin := p.active()
	return plugin != nil && plugin.Handles(operation)
}

// Admit runs the plugin. The plugin might have been replaced since Handles was called.
func (p *livePlugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := p.active().(admission.MutationInterface); ok && plugin.Handles(a.GetOperation()) {
		return plugin.Admit(ctx, a, o)
	}
	return nil
}

// Validate runs the plugin.
func (p *livePlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := p.active().(admission.ValidationInterface); ok && plugin.Handles(a.GetOperation()) {
		return plugin.Validate(ctx, a, o)
	}
	return nil
}
