package project

import (
	"fmt"
	"sync/atomic"
)

// Options contains the administrator's settings (projectConfig in a MasterConfig).
type Options struct {
	// RequestTemplate is the template for requested projects, as `<namespace>/<name>`. "" means
	// standard.Template.
	RequestTemplate string
	// RequestMessage is the message for users who are not allowed to request projects. "" means
	// defaultMessage.
	RequestMessage string
	// DefaultNodeSelector is the node selector for projects without their own node selector, in the
	// form `key=value,key=value`.
	DefaultNodeSelector string
	// Domains are the cluster's DNS domain and the default domain of routes.
	Domains []string
}

// Settings stores Options, which can change while the server is running.
type Settings struct{ current atomic.Pointer[parsed] }

// parsed contains validated Options.
type parsed struct {
	Options
	nodeSelector map[string]string
}

// NewSettings returns settings with the initial options.
func NewSettings(options Options) (*Settings, error) {
	s := &Settings{}
	apply, err := s.Prepare(options)
	if err != nil {
		return nil, err
	}
	apply()
	return s, nil
}

// Prepare validates options. They take effect when the caller calls apply.
func (s *Settings) Prepare(options Options) (apply func(), err error) {
	selector, err := parseSelector(options.DefaultNodeSelector)
	if err != nil {
		return nil, fmt.Errorf("parse projectConfig.defaultNodeSelector %q: %w", options.DefaultNodeSelector, err)
	}
	return func() { s.current.Store(&parsed{options, selector}) }, nil
}

func (s *Settings) now() *parsed { return s.current.Load() }
