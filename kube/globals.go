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

// Globals sets every process-wide variable of upstream that more than one component uses. The
// processes of the control plane and of the node call it once, before their first component starts.
// The variables are:
//
//   - feature gates (utilfeature.DefaultMutableFeatureGate): one set for all components, so
//     component configurations leave theirs empty; otherwise the last writer would win.
//   - component versions (compatibility.DefaultComponentGlobalsRegistry): the API server registers
//     and freezes them; later users must get the same.
//   - the logger (logsapi.ValidateAndApply): a second application in one process is an error, and
//     all components share format and verbosity.
//   - client-go's default warning handler: the API server's loopback clients must not log warnings
//     that they themselves caused.
//
// Control plane and node are two processes because of variables that cannot be shared: kubelet's
// metrics collectors and listeners, and the CSI plugin's node name, which kubelet and the
// controllers would overwrite.
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

// Version returns the version of the embedded Kubernetes, for instance "v1.37.1".
func Version() string { return version.Get().GitVersion }
