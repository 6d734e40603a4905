package kube

import (
	"fmt"
	"maps"

	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/kubernetes/pkg/features"
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
// Control plane and node are two processes because of variables that cannot be shared: the
// kubelet's metrics collectors and listeners, and the CSI plugin's node name, which the kubelet and
// the controllers would overwrite.
func Globals(gates map[string]bool) error {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	registry := compatibility.DefaultComponentGlobalsRegistry
	registry.ComponentGlobalsOrRegister(basecompatibility.DefaultKubeComponent,
		compatibility.DefaultBuildEffectiveVersion(), utilfeature.DefaultMutableFeatureGate)
	all := ownGates()
	maps.Copy(all, gates)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(all); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	if err := registry.Set(); err != nil {
		return fmt.Errorf("set component versions: %w", err)
	}
	logger := klog.Background()
	logging := logsapi.NewLoggingConfiguration()
	if err := logsapi.ValidateAndApply(logging, utilfeature.DefaultFeatureGate); err != nil {
		return fmt.Errorf("set logging: %w", err)
	}
	// ValidateAndApply replaces the logger of the process, whose output has the names of components
	// and no secrets. The sink of klog itself, in a process without such a logger, is of another type.
	if _, own := logger.GetSink().(textlogger.KlogBufferWriter); own {
		klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	}
	return nil
}

// ownGates returns the feature gates whose value differs from upstream's default.
//
// EnvFiles lets kubelet read a file of a container as root, to set variables of another one
// (fileKeyRef). Kubelet accepts pipes and files of every size there: a tenant could use all memory
// of the node, or block kubelet's threads and the deletion of the pod.
//
// ConcurrentWatchObjectDecode starts ten goroutines for each watch of etcd, more than all others of
// the watch. It pays only for watches with thousands of changes a second.
func ownGates() map[string]bool {
	return map[string]bool{
		string(features.EnvFiles):                           false,
		string(genericfeatures.ConcurrentWatchObjectDecode): false,
	}
}

// Version returns the version of the embedded Kubernetes, for instance "v1.37.1".
func Version() string { return version.Get().GitVersion }
