package project

import (
	"fmt"
	"sync/atomic"
)

// Options are what the administrator decides (projectConfig of a MasterConfig).
type Options struct {
	// RequestTemplate is `<namespace>/<name>` of the template of requested projects, empty for standard.Template.
	RequestTemplate string
	// RequestMessage is what someone reads who may not request projects, empty for OpenShift's.
	RequestMessage string
	// DefaultNodeSelector is `key=value,key=value`, the node selector of projects without one of their own.
	DefaultNodeSelector string
}

// Settings are Options that can be exchanged while the server runs.
type Settings struct{ current atomic.Pointer[settled] }

// settled are Options that can be used.
type settled struct {
	Options
	nodeSelector map[string]string
}

// NewSettings begins with options.
func NewSettings(options Options) (*Settings, error) {
	s := &Settings{}
	apply, err := s.Prepare(options)
	if err != nil {
		return nil, err
	}
	apply()
	return s, nil
}

// Prepare checks options, which count after apply.
func (s *Settings) Prepare(options Options) (apply func(), err error) {
	selector, err := parseSelector(options.DefaultNodeSelector)
	if err != nil {
		return nil, fmt.Errorf("read projectConfig.defaultNodeSelector %q: %w", options.DefaultNodeSelector, err)
	}
	return func() { s.current.Store(&settled{options, selector}) }, nil
}

func (s *Settings) now() *settled { return s.current.Load() }
