// Package kube runs the control plane of upstream Kubernetes inside this process: etcd, the API
// server with our API groups in its chain, the controller manager, the attach-detach controller
// with our volume plugins, and the scheduler.
//
// Each part is a struct whose fields are everything it depends on; Run blocks, calls ready once
// when the part serves, and returns nil after its context has been cancelled. Nothing here reads
// a configuration file: the composition root fills the fields. Upstream is used through its
// typed options without a patch; what it keeps in process-wide variables is listed in globals.go.
package kube

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// apply sets arguments on the flags of an upstream program, which come in named sections.
func apply(given arguments.Map, setting string, sections cliflag.NamedFlagSets) error {
	var sets []*pflag.FlagSet
	for _, section := range sections.FlagSets {
		sets = append(sets, section)
	}
	return given.ApplyTo(setting, sets...)
}
