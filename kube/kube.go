// Package kube runs upstream Kubernetes' control plane inside this process: etcd, the API server
// with Slipway's API groups in its delegation chain, the controller manager, the attach-detach
// controller with Slipway's volume plugins, and the scheduler.
//
// Each component is a struct whose fields are all its dependencies. Run blocks, calls ready once
// when the component serves requests, and returns nil after its context is canceled. This package
// reads no configuration files: the composition root sets the fields. Upstream is used through its
// typed options, without patches. globals.go lists its process-wide variables.
package kube

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// apply sets arguments as flags of an upstream program. The flags are grouped in named sections.
func apply(args arguments.Map, setting string, sections cliflag.NamedFlagSets) error {
	var sets []*pflag.FlagSet
	for _, section := range sections.FlagSets {
		sets = append(sets, section)
	}
	return args.ApplyTo(setting, sets...)
}
