package kube

import (
	"fmt"

	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
)

// Globals sets every process-wide variable of upstream that more than one part of a process
// touches. It is called once, before the first part starts, by the control plane's process and by
// the node's. This is the list, with the reasons:
//
//   - feature gates (utilfeature.DefaultMutableFeatureGate): one set for all parts of the process, so
//     component configurations leave theirs empty; the last writer would win otherwise.
//   - component versions (compatibility.DefaultComponentGlobalsRegistry): the API server registers
//     and freezes them; whoever comes second must find the same.
//   - the logger (logsapi.ValidateAndApply): a second application in one process is an error, and
//     format and verbosity are shared by all parts.
//   - client-go's default warning handler: the API server's loopback clients must not log warnings
//     that they themselves caused.
//
// What cannot be shared within a process at all is why control plane and node are two: kubelet's
// metrics collectors and listeners, and the CSI plugin's node name, which the last started of
// kubelet and the controllers would own.
func Globals(gates map[string]bool) error {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	registry := compatibility.DefaultComponentGlobalsRegistry
	registry.ComponentGlobalsOrRegister(basecompatibility.DefaultKubeComponent,
		compatibility.DefaultBuildEffectiveVersion(), utilfeature.DefaultMutableFeatureGate)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	if err := registry.Set(); err != nil {
		return fmt.Errorf("set component versions: %w", err)
	}
	logging := logsapi.NewLoggingConfiguration()
	if err := logsapi.ValidateAndApply(logging, utilfeature.DefaultFeatureGate); err != nil {
		return fmt.Errorf("set logging: %w", err)
	}
	return nil
}

// Version is the version of the embedded Kubernetes, for instance "v1.37.1".
func Version() string { return version.Get().GitVersion }
