// Package kube runs the control plane of upstream Kubernetes inside this process: etcd, the API
// server with our API groups in its chain, the controller manager, the attach-detach controller
// with our volume plugins, and the scheduler.
//
// Each component is a struct whose fields are all its dependencies. Run blocks, calls ready once
// when the component serves, and returns nil after its context was canceled. The package reads no
// configuration file: the composition root fills the fields. Upstream is used through its typed
// options without a patch. globals.go lists its process-wide variables.
package kube

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// apply sets arguments on the flags of an upstream program, which are grouped in named sections.
func apply(args arguments.Map, setting string, sections cliflag.NamedFlagSets) error {
	var sets []*pflag.FlagSet
	for _, section := range sections.FlagSets {
		sets = append(sets, section)
	}
	return args.ApplyTo(setting, sets...)
}
